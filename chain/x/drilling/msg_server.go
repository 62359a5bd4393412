package drilling

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"unicode"
	"unicode/utf8"

	errorsmod "cosmossdk.io/errors"

	"github.com/tally-network/tally/chain/address"
	"github.com/tally-network/tally/chain/coin"
	"github.com/tally-network/tally/chain/module"
	"github.com/tally-network/tally/core/drilling"
	drillingv1 "github.com/tally-network/tally/gen/tally/drilling/v1"
)

// Limits on what a project says of itself, in bytes.
const (
	maxName    = 64
	maxSummary = 1 << 10
	maxContact = 256
)

// microUT is how many units of a budget make a ut.
const microUT = 1_000_000

type msgServer struct{ *Keeper }

// RegisterProject proposes a project.
func (s msgServer) RegisterProject(ctx context.Context, m *drillingv1.MsgRegisterProject) (*drillingv1.MsgRegisterProjectResponse, error) {
	partner, err := address.Parse(m.Partner)
	if err != nil {
		return nil, err
	}
	if m.BudgetUt == 0 || m.BudgetUt > drilling.MaxBudget {
		return nil, errorsmod.Wrapf(ErrProject, "a budget of %d ut: want 1 to %d", m.BudgetUt, uint64(drilling.MaxBudget))
	}
	rules, err := s.rules.Get(ctx)
	if err != nil {
		return nil, err
	}
	p := drillingv1.Project{
		Status: drillingv1.STATUS_PROPOSED, Partner: m.Partner, Name: m.Name, Summary: m.Summary, Contact: m.Contact,
		Budget: m.BudgetUt * microUT, Deposit: rules.Deposit,
	}
	if err := checkTexts(&p); err != nil {
		return nil, errorsmod.Wrap(ErrProject, err.Error())
	}
	if err := s.bank.SendCoinsFromAccountToModule(ctx, partner, Name, coin.Of(p.Deposit)); err != nil {
		return nil, errorsmod.Wrapf(err, "lock the deposit of %d utally", p.Deposit)
	}
	if p.Number, err = s.next.Next(ctx); err != nil {
		return nil, err
	}
	return &drillingv1.MsgRegisterProjectResponse{Project: p.Number}, errors.Join(s.projects.Set(ctx, p.Number, p), tell(ctx, &p))
}

// checkTexts bounds what a project says of itself: each text is a line, and nothing in it moves a terminal.
func checkTexts(p *drillingv1.Project) error {
	for _, x := range []struct {
		what, text string
		most       int
	}{{"name", p.Name, maxName}, {"summary", p.Summary, maxSummary}, {"contact", p.Contact, maxContact}} {
		if len(x.text) > x.most || !utf8.ValidString(x.text) {
			return fmt.Errorf("its %s has %d bytes: want at most %d of UTF-8", x.what, len(x.text), x.most)
		}
		if strings.ContainsFunc(x.text, func(r rune) bool { return !unicode.IsPrint(r) }) {
			return fmt.Errorf("its %s has characters that cannot be printed in a line", x.what)
		}
	}
	if p.Name == "" {
		return errors.New("it has no name")
	}
	return nil
}

// AdmitProject lets a project take tasks.
func (s msgServer) AdmitProject(ctx context.Context, m *drillingv1.MsgAdmitProject) (*drillingv1.MsgAdmitProjectResponse, error) {
	if err := s.rules.Authorize(ctx, m.Authority); err != nil {
		return nil, err
	}
	p, err := s.Get(ctx, m.Project)
	if err != nil {
		return nil, err
	}
	if err := change(&p, (*drilling.Project).Admit); err != nil {
		return nil, errorsmod.Wrapf(ErrStatus, "project %d: %s", p.Number, err)
	}
	return &drillingv1.MsgAdmitProjectResponse{}, errors.Join(s.projects.Set(ctx, p.Number, p), tell(ctx, &p))
}

// EndProject ends a project and gives its deposit back.
func (s msgServer) EndProject(ctx context.Context, m *drillingv1.MsgEndProject) (*drillingv1.MsgEndProjectResponse, error) {
	p, err := s.Get(ctx, m.Project)
	if err != nil {
		return nil, err
	}
	if m.Sender != p.Partner && s.rules.Authorize(ctx, m.Sender) != nil {
		return nil, errorsmod.Wrapf(ErrPartner, "project %d of %s, signed by %s", p.Number, p.Partner, m.Sender)
	}
	if err := change(&p, (*drilling.Project).End); err != nil {
		return nil, errorsmod.Wrapf(ErrStatus, "project %d: %s", p.Number, err)
	}
	if err := s.pay(ctx, &p); err != nil {
		return nil, err
	}
	return &drillingv1.MsgEndProjectResponse{}, errors.Join(s.keep(ctx, p), tell(ctx, &p))
}

// UpdateParams replaces the rules. Projects keep the deposits that they have.
func (s msgServer) UpdateParams(ctx context.Context, m *drillingv1.MsgUpdateParams) (*drillingv1.MsgUpdateParamsResponse, error) {
	if err := s.rules.Replace(ctx, m.Authority, m.Params); err != nil {
		return nil, err
	}
	return &drillingv1.MsgUpdateParamsResponse{}, module.Emit(ctx, &drillingv1.EventParams{Params: m.Params})
}

func tell(ctx context.Context, p *drillingv1.Project) error {
	return module.Emit(ctx, &drillingv1.EventProject{Project: p.Number, Partner: p.Partner, Status: p.Status})
}
