package memory_test

import (
	"testing"

	"github.com/hubmesh/hubmesh/internal/store"
	"github.com/hubmesh/hubmesh/internal/store/memory"
	"github.com/hubmesh/hubmesh/internal/store/storetest"
)

// data §2.1, §2.2, §2.4, §1.3
func TestTheMemoryStoreKeepsTheContract(t *testing.T) {
	t.Parallel()
	storetest.Run(t, func(t testing.TB, o storetest.Options) store.Store {
		s := memory.New(memory.Options{History: o.History, ScanRows: o.ScanRows, ScanBytes: o.ScanBytes})
		t.Cleanup(func() {
			if err := s.Close(); err != nil {
				t.Error(err)
			}
		})
		return s
	})
}
