package archtest

import (
	"go/ast"
	"go/parser"
	"go/token"
	"path"
	"slices"
	"strings"
	"testing"
)

// adding are messages that move as much money again if they are sent twice. A role may be killed
// after it has sent something, and then sends it again: so roles send none of them.
var adding = []string{"MsgSend", "MsgMultiSend", "MsgDeposit", "MsgWithdraw", "MsgFund", "MsgPropose"}

// addsNothing sends one of them, for a reason.
var addsNothing = map[string]string{
	"node/client/queue.go":    "a payment to oneself, which takes the sequence of what the node lost",
	"node/life/life.go":       "gifts of play money, after a look at what people have",
	"node/life/guest.go":      "stake of a guest that never comes again",
	"node/partner/partner.go": "a second proposal to admit a project fails, and its deposit comes back",
}

func TestRolesSendNothingThatAdds(t *testing.T) {
	found := map[string]bool{}
	walk(t, func(name string, text []byte) {
		if path.Ext(name) != ".go" || strings.HasSuffix(name, "_test.go") || !under(name, "node") {
			return
		}
		syntax, err := parser.ParseFile(token.NewFileSet(), name, text, parser.SkipObjectResolution)
		if err != nil {
			t.Fatal(err)
		}
		ast.Inspect(syntax, func(n ast.Node) bool {
			literal, ok := n.(*ast.CompositeLit)
			if !ok {
				return true
			}
			if of, ok := literal.Type.(*ast.SelectorExpr); ok && slices.Contains(adding, of.Sel.Name) {
				found[name] = true
				if addsNothing[name] == "" {
					t.Errorf("%s sends a %s, which doubles if the process is killed and starts again", name, of.Sel.Name)
				}
			}
			return true
		})
	})
	for name := range addsNothing {
		if !found[name] {
			t.Errorf("%s sends nothing that adds: take it off the list", name)
		}
	}
}
