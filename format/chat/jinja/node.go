package jinja

// expr is an expression, stmt a statement, as the parser makes them.
type (
	expr interface {
		eval(r *run, s *scope) (Value, error)
	}
	stmt interface {
		exec(r *run, s *scope) (signal, error)
	}
)

// signal says how a statement ends: as usual, or by leaving a loop's body.
type signal int

const (
	onward signal = iota
	breaks
	continues
)

// Expressions.
type (
	literal  struct{ v Value }
	name     struct{ id string }
	sequence struct {
		items   []expr
		isTuple bool
	}
	mapping struct{ keys, values []expr }
	unary   struct {
		op string
		x  expr
	}
	binary struct {
		op   string
		l, r expr
	}
	// logic is and, or or.
	logic struct {
		isAnd bool
		l, r  expr
	}
	comparison struct {
		first expr
		ops   []string
		rest  []expr
	}
	concat      struct{ items []expr }
	conditional struct{ test, then, other expr } // other may be nil
	attribute   struct {
		x  expr
		id string
	}
	subscript struct{ x, at expr }
	slice     struct{ x, from, to, step expr } // nil where not given
	call      struct {
		f    expr
		args args
	}
	filter struct {
		x    expr // nil where a block is filtered
		id   string
		args args
	}
	test struct {
		x    expr
		id   string
		args args
	}
	// field is an attribute of a namespace, as a target of set.
	field struct{ space, id string }
)

// args are the arguments of a call as they are written.
type args struct {
	list         []expr
	names        []string
	named        []expr
	spread, rest expr // *list and **dict; nil where not given
}

// Statements.
type (
	output struct{ text string }
	print_ struct{ x expr }
	block  struct {
		body   []stmt
		hidden []string // names that are undefined until they are set; see frame
	}
	choice struct {
		tests  []expr
		bodies []block
		other  block
	}
	repeat struct {
		target      expr
		over, where expr // where may be nil
		body, other block
		isRecursive bool
	}
	assign struct {
		target expr
		value  expr
	}
	capture struct {
		target expr
		filter *filter // nil if there is none
		body   block
	}
	with struct {
		targets []expr
		values  []expr
		body    block
	}
	define struct{ m *macroNode }
	invoke struct {
		call   call
		caller *macroNode
	}
	filtered struct {
		filter *filter
		body   block
	}
	// scoped is a body that has a scope of its own, such as generation's.
	scoped struct{ body block }
	leave  struct{ how signal }
)

// macroNode is a macro as it is written.
type macroNode struct {
	id       string
	params   []string
	defaults []expr // of the last params
	body     block
	// uses says which of caller, varargs and kwargs the body reads.
	uses map[string]bool
}
