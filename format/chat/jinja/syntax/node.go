package syntax

// Expr is an expression, Stmt a statement, as the parser makes them.
type (
	Expr interface{ isExpr() }
	Stmt interface{ isStmt() }
)

// Signal says how a statement ends: as usual, or by leaving a loop's body.
type Signal int

const (
	Onward Signal = iota
	Breaks
	Continues
)

// Expressions.
type (
	Literal  struct{ V any }
	Name     struct{ ID string }
	Sequence struct {
		Items   []Expr
		IsTuple bool
	}
	Mapping struct{ Keys, Values []Expr }
	Unary   struct {
		Op string
		X  Expr
	}
	Binary struct {
		Op   string
		L, R Expr
	}
	// Logic is and, or or.
	Logic struct {
		IsAnd bool
		L, R  Expr
	}
	Comparison struct {
		First Expr
		Ops   []string
		Rest  []Expr
	}
	Concat      struct{ Items []Expr }
	Conditional struct{ Test, Then, Other Expr } // other may be nil
	Attribute   struct {
		X  Expr
		ID string
	}
	Subscript struct{ X, At Expr }
	Slice     struct{ X, From, To, Step Expr } // nil where not given
	Call      struct {
		F    Expr
		Args Args
	}
	Filter struct {
		X    Expr // nil where a block is filtered
		ID   string
		Args Args
	}
	Test struct {
		X    Expr
		ID   string
		Args Args
	}
	// Field is an attribute of a namespace, as a target of set.
	Field struct{ Space, ID string }
)

// Args are the arguments of a call as they are written.
type Args struct {
	List         []Expr
	Names        []string
	Named        []Expr
	Spread, Rest Expr // *list and **dict; nil where not given
}

// Statements.
type (
	Output struct{ Text string }
	Print  struct{ X Expr }
	Block  struct {
		Body   []Stmt
		Hidden []string // names that are undefined until they are set; see frame
	}
	Choice struct {
		Tests  []Expr
		Bodies []Block
		Other  Block
	}
	Repeat struct {
		Target      Expr
		Over, Where Expr // where may be nil
		Body, Other Block
		IsRecursive bool
	}
	Assign struct {
		Target Expr
		Value  Expr
	}
	Capture struct {
		Target Expr
		Filter *Filter // nil if there is none
		Body   Block
	}
	With struct {
		Targets []Expr
		Values  []Expr
		Body    Block
	}
	Define struct{ M *Macro }
	Invoke struct {
		Call   Call
		Caller *Macro
	}
	Filtered struct {
		Filter *Filter
		Body   Block
	}
	// Scoped is a body that has a scope of its own, such as generation's.
	Scoped struct{ Body Block }
	Leave  struct{ How Signal }
)

// Macro is a macro as it is written.
type Macro struct {
	ID       string
	Params   []string
	Defaults []Expr // of the last params
	Body     Block
	// uses says which of caller, varargs and kwargs the body reads.
	Uses map[string]bool
}

func (Literal) isExpr()     {}
func (Name) isExpr()        {}
func (Sequence) isExpr()    {}
func (Mapping) isExpr()     {}
func (Unary) isExpr()       {}
func (Binary) isExpr()      {}
func (Logic) isExpr()       {}
func (Comparison) isExpr()  {}
func (Concat) isExpr()      {}
func (Conditional) isExpr() {}
func (Attribute) isExpr()   {}
func (Subscript) isExpr()   {}
func (Slice) isExpr()       {}
func (Call) isExpr()        {}
func (Filter) isExpr()      {}
func (Test) isExpr()        {}
func (Field) isExpr()       {}

func (Output) isStmt()    {}
func (Print) isStmt()     {}
func (Choice) isStmt()    {}
func (Assign) isStmt()    {}
func (Define) isStmt()    {}
func (Invoke) isStmt()    {}
func (Leave) isStmt()     {}
func (*Block) isStmt()    {}
func (*Repeat) isStmt()   {}
func (*Capture) isStmt()  {}
func (*With) isStmt()     {}
func (*Filtered) isStmt() {}
func (*Scoped) isStmt()   {}
