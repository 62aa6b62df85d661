package main

import "context"

type tokenCmd struct {
	Create tokenCreateCmd `cmd:"" help:"Make a token; it is printed this once."`
	List   tokenListCmd   `cmd:"" help:"List every token, without its secret."`
	Revoke tokenRevokeCmd `cmd:"" help:"Revoke a token for good."`
}

type tokenCreateCmd struct {
	remote
	As   string `required:"" help:"Subject that the token speaks as." placeholder:"SUBJECT"`
	Name string `help:"What the token is for, such as the machine that holds it." placeholder:"NAME"`
}

// Run makes a token and prints it.
func (c *tokenCreateCmd) Run(ctx context.Context, s std) error {
	server, err := c.client()
	if err != nil {
		return err
	}
	got, err := server.CreateToken(ctx, c.As, c.Name)
	if err != nil {
		return err
	}
	return s.print(got)
}

type tokenListCmd struct{ remote }

// Run prints the tokens.
func (c *tokenListCmd) Run(ctx context.Context, s std) error {
	server, err := c.client()
	if err != nil {
		return err
	}
	list, err := server.Tokens(ctx)
	if err != nil {
		return err
	}
	return s.print(map[string]any{"tokens": list})
}

type tokenRevokeCmd struct {
	remote
	ID string `arg:"" help:"Id of the token."`
}

// Run revokes the token.
func (c *tokenRevokeCmd) Run(ctx context.Context, s std) error {
	server, err := c.client()
	if err != nil {
		return err
	}
	if err := server.RevokeToken(ctx, c.ID); err != nil {
		return err
	}
	return s.print(map[string]string{"revoked": c.ID})
}
