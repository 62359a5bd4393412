package adversary

import (
	"reflect"
	"slices"
	"strings"

	"github.com/cosmos/gogoproto/proto"
	protov2 "google.golang.org/protobuf/proto"
	"google.golang.org/protobuf/reflect/protoreflect"
	"google.golang.org/protobuf/types/dynamicpb"

	msgv1 "cosmossdk.io/api/cosmos/msg/v1"

	sdk "github.com/cosmos/cosmos-sdk/types"

	"github.com/tally-network/tally/core/canon"
	"github.com/tally-network/tally/core/dispute"
	"github.com/tally-network/tally/core/job"
	"github.com/tally-network/tally/internal/testkit/adversary/bend"
	"github.com/tally-network/tally/internal/testkit/chaintest"
)

// messages are the names of all messages that people may send to the modules of the
// chain: ours, and the SDK's that move money.
func (w *World) messages() (out []string) {
	for _, url := range w.Registry.ListImplementations(sdk.MsgInterfaceProtoName) {
		name := strings.TrimPrefix(url, "/")
		if strings.HasPrefix(name, "tally.") || strings.HasPrefix(name, "cosmos.bank.") || strings.HasPrefix(name, "cosmos.feegrant.") {
			out = append(out, brief(name))
		}
	}
	slices.Sort(out)
	return out
}

// brief is the name of a message as scripts have it; full is its inverse.
func brief(name string) string {
	return strings.Replace(strings.TrimPrefix(name, "tally."), ".v1.", ".", 1)
}

func full(name string) string {
	if module, msg, ok := strings.Cut(name, "."); ok && !strings.Contains(msg, ".") {
		return "tally." + module + ".v1." + msg
	}
	return name
}

// composer makes the message of an op in the state as it is.
type composer struct {
	*play
	Op
	actor chaintest.Account
	o     *order
	l     *job.Lease             // nil if there is none
	u     *job.Unit              // nil if there is none
	g     *game                  // nil if there is none
	coded map[string]canon.Coded // values that byte fields hold, by path
	bent  error                  // the last bend that did not fit
}

func (p *play) composer(op Op) *composer {
	c := &composer{play: p, Op: op, actor: named(op.By), coded: map[string]canon.Coded{}}
	if n := len(p.orders); n > 0 {
		i := op.Order % n
		c.o, c.l = p.orders[i], p.views[i]
		if c.l != nil {
			if op.Unit != job.OfFiles {
				c.Unit = op.Unit % len(c.l.Units)
				c.u = &c.l.Units[c.Unit]
			}
		}
	}
	if open := p.open(); len(open) > 0 {
		c.g = open[op.Order%len(open)]
	}
	return c
}

// message returns what an op sends, before and after it is bent.
func (c *composer) message() (sdk.Msg, *dynamicpb.Message, error) {
	name := protoreflect.FullName(full(c.Msg))
	d, err := proto.HybridResolver.FindDescriptorByName(name)
	if err != nil {
		return nil, nil, err
	}
	md := d.(protoreflect.MessageDescriptor)
	m := dynamicpb.NewMessage(md)
	c.fill(m, "")
	for _, b := range c.Bend {
		path, token, _ := strings.Cut(b, "=")
		if at, ok := c.inCoded(path); ok {
			c.bent = bend.Go(c.coded[at], strings.TrimPrefix(path, at+"."), token, c.known())
			c.setBytes(m, at)
			continue
		}
		if err := bend.Proto(m, path, token, c.known()); err != nil {
			c.bent = err
		}
	}
	// Nobody can sign for another, however the message is bent.
	if signer, ok := protov2.GetExtension(md.Options(), msgv1.E_Signer).([]string); ok && len(signer) > 0 {
		c.put(m, md.Fields().ByName(protoreflect.Name(signer[0])), c.actor.String())
	}
	typed, err := c.typed(m)
	if err != nil {
		return nil, m, err
	}
	c.sign(typed)
	return typed, m, nil
}

// known is what bends name: people, orders, and what counts something in the lease.
func (c *composer) known() *bend.Known {
	k := &bend.Known{People: everybody, Address: func(name string) string { return named(name).String() }}
	for _, o := range c.orders {
		k.Orders = append(k.Orders, o.id.String())
	}
	if c.l != nil {
		p := &c.l.Order.Problem
		k.Numbers = []int{p.Rounds, p.Shards, p.Steps, p.Interval, p.Segments(), len(c.l.Units), len(c.l.Providers), c.l.Round}
	}
	return k
}

func (c *composer) inCoded(path string) (at string, ok bool) {
	for at := range c.coded {
		if strings.HasPrefix(path, at+".") {
			return at, true
		}
	}
	return "", false
}

// setBytes writes a coded value again into its field.
func (c *composer) setBytes(m *dynamicpb.Message, at string) {
	fd := m.Descriptor().Fields().ByName(protoreflect.Name(at)) // coded values are fields of messages themselves
	m.Set(fd, protoreflect.ValueOfBytes(encode(c.coded[at])))
}

// encode returns the bytes of a coded value; of a move, with its kind.
func encode(v canon.Coded) (b []byte) {
	defer func() {
		if recover() != nil {
			b = nil // what cannot be written is not sent
		}
	}()
	if m, ok := v.(dispute.Move); ok {
		return dispute.EncodeMove(m)
	}
	return canon.Marshal(v)
}

// copied returns a coded value that shares nothing with v: people go on using theirs
// when it is bent. It is nil if v cannot be read again.
func copied(v canon.Coded) canon.Coded {
	if _, ok := v.(dispute.Move); ok {
		m, err := dispute.DecodeMove(encode(v))
		if err != nil {
			return nil
		}
		return m
	}
	x := reflect.New(reflect.TypeOf(v).Elem()).Interface().(canon.Coded)
	if canon.Unmarshal(encode(v), x) != nil {
		return nil
	}
	return x
}

// typed returns a message as handlers take it.
func (c *composer) typed(m *dynamicpb.Message) (sdk.Msg, error) {
	b, err := protov2.Marshal(m)
	if err != nil {
		return nil, err
	}
	msg, err := c.Registry.Resolve("/" + string(m.Descriptor().FullName()))
	if err != nil {
		return nil, err
	}
	return msg, proto.Unmarshal(b, msg)
}

// fill gives every field of m what it means here; what has no meaning stays absent.
func (c *composer) fill(m protoreflect.Message, path string) {
	fields := m.Descriptor().Fields()
	for i := range fields.Len() {
		fd := fields.Get(i)
		at := path + string(fd.Name())
		v, known := c.source(m.Descriptor(), at, fd)
		switch {
		case v != nil:
			c.put(m, fd, v)
		case !known && fd.Kind() == protoreflect.MessageKind && fd.Cardinality() != protoreflect.Repeated && fd.ContainingOneof() == nil && path == "":
			c.fill(m.Mutable(fd).Message(), at+".")
		}
		if v, ok := v.(canon.Coded); ok {
			if v = copied(v); v != nil {
				c.coded[at] = v
			}
		}
	}
}

// source returns what a field means: by the message and the field's path, else by the
// field's path, else by its name alone.
func (c *composer) source(md protoreflect.MessageDescriptor, at string, fd protoreflect.FieldDescriptor) (v any, known bool) {
	for _, key := range []string{string(md.Name()) + "." + at, at, string(fd.Name())} {
		if f := sources[key]; f != nil {
			return f(c), true
		}
	}
	return nil, false
}

// put sets a field to a value of Go, if it can hold it.
func (c *composer) put(m protoreflect.Message, fd protoreflect.FieldDescriptor, v any) {
	if h, ok := v.(canon.Hash); ok {
		v = h[:]
	}
	if x, ok := v.(canon.Coded); ok {
		v = encode(x)
	}
	message := fd.Kind() == protoreflect.MessageKind
	switch v := v.(type) {
	case string:
		if fd.Kind() == protoreflect.StringKind && !fd.IsList() {
			m.Set(fd, protoreflect.ValueOfString(v))
		}
	case []byte:
		if fd.Kind() == protoreflect.BytesKind && !fd.IsList() {
			m.Set(fd, protoreflect.ValueOfBytes(v))
		}
	case bool:
		if fd.Kind() == protoreflect.BoolKind && !fd.IsList() {
			m.Set(fd, protoreflect.ValueOfBool(v))
		}
	case int:
		if integer(fd.Kind()) && !fd.IsList() {
			m.Set(fd, bend.Number(fd.Kind(), uint64(v)))
		}
	case []int:
		if integer(fd.Kind()) && fd.IsList() {
			for _, n := range v {
				m.Mutable(fd).List().Append(bend.Number(fd.Kind(), uint64(n)))
			}
		}
	case []canon.Hash:
		if fd.Kind() == protoreflect.BytesKind && fd.IsList() {
			for _, h := range v {
				m.Mutable(fd).List().Append(protoreflect.ValueOfBytes(h[:]))
			}
		}
	case proto.Message:
		b, err := proto.Marshal(v)
		if err != nil || !message {
			return
		}
		to := m.Mutable(fd)
		if fd.IsList() {
			l := to.List()
			e := l.NewElement()
			_ = protov2.Unmarshal(b, e.Message().Interface())
			l.Append(e)
			return
		}
		_ = protov2.Unmarshal(b, to.Message().Interface())
	}
}

func integer(k protoreflect.Kind) bool {
	switch k {
	case protoreflect.BoolKind, protoreflect.StringKind, protoreflect.BytesKind, protoreflect.MessageKind,
		protoreflect.GroupKind, protoreflect.FloatKind, protoreflect.DoubleKind:
		return false
	}
	return true
}
