package meshtest

import (
	"context"
	"errors"
	"log/slog"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/hubmesh/hubmesh/internal/address"
	"github.com/hubmesh/hubmesh/internal/cluster"
	"github.com/hubmesh/hubmesh/internal/hub"
	"github.com/hubmesh/hubmesh/internal/message"
)

// lines keeps the log of all silos.
type lines struct {
	mu  sync.Mutex
	all []line
}

type line struct {
	silo  string
	level slog.Level
	text  string
	attrs map[string]string
}

type handler struct {
	l    *lines
	silo string
}

func (h handler) Enabled(context.Context, slog.Level) bool { return true }
func (h handler) WithAttrs([]slog.Attr) slog.Handler       { return h }
func (h handler) WithGroup(string) slog.Handler            { return h }
func (h handler) Handle(_ context.Context, r slog.Record) error {
	x := line{h.silo, r.Level, r.Message, map[string]string{}}
	r.Attrs(func(a slog.Attr) bool {
		x.attrs[a.Key] = a.Value.String()
		return true
	})
	h.l.mu.Lock()
	defer h.l.mu.Unlock()
	h.l.all = append(h.l.all, x)
	return nil
}

func (l *lines) logger(silo string) *slog.Logger { return slog.New(handler{l, silo}) }

// with lists the lines at a level or above whose text holds a phrase.
func (l *lines) with(level slog.Level, phrase string) []line {
	l.mu.Lock()
	defer l.mu.Unlock()
	var out []line
	for _, x := range l.all {
		if x.level >= level && strings.Contains(x.text, phrase) {
			out = append(out, x)
		}
	}
	return out
}

// C34: one warning an address in 60 s, every delivery answered
func TestARefusedAddressIsWarnedOfOnceAMinuteWithWhatWasSuppressed(t *testing.T) {
	l := &lines{}
	mesh(t, Options{Logger: l.logger}, func(t *testing.T, c *Cluster) {
		const phrase = "Directed delivery to pod hub 'portal/nobody' was refused: no silo in this cluster is currently serving that hub"
		ask := func() {
			_, err := echo.Ask(system(t), c.Silo("s0").Mesh, "portal/nobody", &echoRequest{})
			var f *message.Failure
			if !errors.As(err, &f) || !f.TargetUnserved {
				t.Fatalf("%v", err)
			}
		}
		for range 10 {
			ask()
		}
		if got := l.with(slog.LevelWarn, phrase); len(got) != 1 || got[0].attrs["answered_by"] == "" || got[0].attrs["operation"] != "test/echo" || got[0].attrs["delivery_id"] == "" {
			t.Fatalf("%+v", got)
		}
		if got := l.with(slog.LevelDebug, phrase); len(got) != 10 {
			t.Errorf("%d lines for 10 refusals", len(got))
		}
		<-time.After(61 * time.Second)
		ask()
		if got := l.with(slog.LevelWarn, phrase); len(got) != 2 || got[1].attrs["suppressed"] != "9" {
			t.Errorf("%+v", got)
		}
	})
}

// C25 C35: a claim that was lost on a static cluster is made again and told to its owner
// CF-27
func TestALostClaimIsMadeAgainByTheFirstQuestionAndLoggedByItsOwner(t *testing.T) {
	l := &lines{}
	mesh(t, Options{Logger: l.logger}, func(t *testing.T, c *Cluster) {
		serve(t, c.Silo("s1"), "portal/x")
		<-time.After(100 * time.Millisecond)
		lost := 0
		for _, s := range c.Silos() {
			s.Router.Do(func(x *cluster.Silo) { lost += len(x.Owner.Lose(func(int) bool { return true })) })
		}
		if lost == 0 {
			t.Fatal("no entry to lose")
		}
		if r, err := echo.Ask(system(t), c.Silo("s2").Mesh, "portal/x", &echoRequest{1}); err != nil || r.Silo != "s1" {
			t.Fatalf("%+v %v", r, err)
		}
		<-time.After(100 * time.Millisecond)
		got := l.with(slog.LevelWarn, "Pod-hub claim for portal/x was lost and is being made again")
		if len(got) != 1 || got[0].silo != "s1" || got[0].attrs["slot_owner"] == "" {
			t.Errorf("%+v", got)
		}
	})
}

// C32 C33, fault 5
func TestAClaimThatDoesNotLandIsWarnedOfOnceAndTellsWhenItHas(t *testing.T) {
	l := &lines{}
	mesh(t, Options{Silos: 2, Logger: l.logger}, func(t *testing.T, c *Cluster) {
		// An address whose slot the other silo owns, so that the claim has to travel.
		var addr string
		for i := 0; addr == ""; i++ {
			a := "portal/c" + string(rune('a'+i))
			c.Silo("s0").Router.Do(func(x *cluster.Silo) {
				if m, _ := x.Table().OwnerOf(a); m.Name == "s1" {
					addr = a
				}
			})
		}
		c.Table.SetAway(true) // nobody is put out
		c.Network.CutBoth("s0", "s1")
		serve(t, c.Silo("s0"), addr)
		<-time.After(20 * time.Second)
		if got := l.with(slog.LevelWarn, "Pod-hub claim for "+addr+" did not land"); len(got) != 1 || got[0].silo != "s0" || got[0].attrs["slot_owner"] != "s1" {
			t.Errorf("%+v", got)
		}
		c.Network.HealBoth("s0", "s1")
		c.Table.SetAway(false)
		c.Wait("the claim to land", func() bool {
			return len(l.with(slog.LevelInfo, "Pod-hub claim for "+addr+" landed after its initial budget was exhausted")) == 1
		})
		// After 20 s without the table one of the two may be put out, and joins anew.
		c.Wait("it to be reached from the other silo", func() bool {
			r, err := echo.Ask(system(t), c.Silo("s1").Mesh, addr, &echoRequest{})
			return err == nil && r.Silo == "s0"
		})
		// What lands at once is told at Debug, and never again.
		serve(t, c.Silo("s0"), "portal/quick")
		<-time.After(time.Second)
		c.Add("s2")
		c.WaitJoined()
		<-time.After(time.Second)
		if got := l.with(slog.LevelInfo, "portal/quick"); len(got) != 0 {
			t.Errorf("%+v", got)
		}
		told := 0
		for _, x := range l.with(slog.LevelDebug, "Pod-hub claim landed") {
			if x.attrs["address"] == "portal/quick" {
				told++
			}
		}
		if told != 1 {
			t.Errorf("its landing was told %d times", told)
		}
	})
}

// C7 C10, fault 15
func TestBeforeASiloIsInTheClusterItsCallersAreToldStarting(t *testing.T) {
	mesh(t, Options{}, func(t *testing.T, c *Cluster) {
		c.Table.SetAway(true)
		s := c.Add("s9")
		_, err := echo.Ask(system(t), s.Mesh, "portal/elsewhere", &echoRequest{})
		var f *message.Failure
		if !errors.As(err, &f) || f.Type != message.ShuttingDown || f.Reason != "starting" || f.TargetUnserved || f.RetryAfter == 0 {
			t.Errorf("%+v", err)
		}
		// Its own hubs answer.
		serve(t, s, "portal/own")
		if _, err := echo.Ask(system(t), s.Mesh, "portal/own", &echoRequest{}); err != nil {
			t.Error(err)
		}
		c.Table.SetAway(false)
		c.Wait("it to join", func() bool { return s.Epoch() != 0 })
		c.Wait("its hub to be reached", func() bool {
			_, err := echo.Ask(system(t), c.Silo("s0").Mesh, "portal/own", &echoRequest{})
			return err == nil
		})
	})
}

// C31, messaging §1.12
func TestAMessageThatIsTooLargeIsRefusedLoudlyAndNotCarriedInTheRefusal(t *testing.T) {
	l := &lines{}
	big := hub.Define[*blob, *blob]("test/big", message.Request)
	mesh(t, Options{Logger: l.logger, Types: []hub.WireType{big.Wire()}}, func(t *testing.T, c *Cluster) {
		k := hub.NewKind("big", hub.Limits{})
		hub.Handle(k, big, func(_ context.Context, _ *hub.Hub, r *blob) (*blob, error) {
			return &blob{make([]byte, int(r.B[0])<<20)}, nil
		})
		if _, err := c.Silo("s1").Mesh.Start(address.Of("portal/big"), k, nil); err != nil {
			t.Fatal(err)
		}
		for what, r := range map[string]*blob{"request": {make([]byte, 5<<20)}, "reply": {[]byte{5}}} {
			_, err := big.Ask(system(t), c.Silo("s0").Mesh, "portal/big", r)
			var f *message.Failure
			if !errors.As(err, &f) || f.Type != message.Failed || f.Reason != message.ReasonUnreadable || len(f.Message) > 500 {
				t.Errorf("%s: %.300v", what, err)
			}
		}
		if r, err := big.Ask(system(t), c.Silo("s0").Mesh, "portal/big", &blob{[]byte{3}}); err != nil || len(r.B) != 3<<20 {
			t.Errorf("3 MiB: %v", err)
		}
		if got := l.with(slog.LevelError, "can not be carried to another silo"); len(got) < 2 {
			t.Errorf("%d lines", len(got))
		}
	})
}

// C29
func TestAFailureOfAPostIsToldToItsSendersHubOnAnotherSiloAndNeverAnsweredWithOne(t *testing.T) {
	mesh(t, Options{}, func(t *testing.T, c *Cluster) {
		told := make(chan *message.Failure, 10)
		k := hub.NewKind("sender", hub.Limits{})
		hub.Handle(k, hub.Failed, func(_ context.Context, _ *hub.Hub, n *hub.Notice) (*hub.None, error) {
			told <- n.Failure
			return nil, nil
		})
		hub.Handle(k, echo, func(ctx context.Context, h *hub.Hub, r *echoRequest) (*echoReply, error) {
			return &echoReply{}, echo.Post(ctx, h.Mesh(), "portal/failing", r)
		})
		sender, err := c.Silo("s0").Mesh.Start(address.Of("portal/sender"), k, nil)
		if err != nil {
			t.Fatal(err)
		}
		release := make(chan struct{})
		bad := hub.NewKind("failing", hub.Limits{})
		hub.Handle(bad, echo, func(context.Context, *hub.Hub, *echoRequest) (*echoReply, error) {
			<-release
			return nil, errors.New("it does not work")
		})
		if _, err := c.Silo("s1").Mesh.Start(address.Of("portal/failing"), bad, nil); err != nil {
			t.Fatal(err)
		}
		if _, err := echo.Ask(system(t), c.Silo("s2").Mesh, "portal/sender", &echoRequest{}); err != nil {
			t.Fatal(err)
		}
		close(release)
		if f := <-told; !strings.Contains(f.Message, "it does not work") {
			t.Errorf("%+v", f)
		}
		// Now the sender is gone when the failure comes: it is dropped, and told to nobody.
		sender.Dispose()
		<-sender.Done()
		<-time.After(time.Second)
		if len(told) != 0 {
			t.Errorf("%d more failures", len(told))
		}
	})
}
