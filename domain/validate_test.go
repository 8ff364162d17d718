package domain_test

import (
	"errors"
	"fmt"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/google/uuid"
	"github.com/stretchr/testify/require"

	"github.com/tasq-dev/tasq/domain"
)

type Address struct {
	City string `json:"city" validate:"required"`
	Zip  string `json:"zip,omitempty" validate:"omitempty,len=5"`
}

type Meta struct {
	Source string `json:"source" validate:"required"`
}

type Order struct {
	Meta
	ID      uuid.UUID          `json:"id" validate:"required"`
	Email   string             `json:"email" validate:"required,email"`
	Lang    string             `json:"lang" validate:"oneof=de en"`
	Color   string             `json:"color" validate:"omitempty,len=3|len=7"`
	Secret  string             `json:"-" validate:"max=3"`
	Bare    int                `validate:"gte=0"`
	Home    Address            `json:"home"`
	Work    *Address           `json:"work"`
	Items   []Address          `json:"items" validate:"max=12,dive"`
	Tags    []string           `json:"tags" validate:"dive,alpha"`
	Stock   map[string]Address `json:"stock" validate:"dive,keys,len=2,endkeys"`
	Confirm string             `json:"confirm" validate:"eqfield=Email"`
	Due     time.Time          `json:"due"`
}

func goodOrder() Order {
	return Order{
		Meta: Meta{Source: "web"}, ID: uuid.Must(uuid.NewV7()), Email: "a@b.de", Confirm: "a@b.de", Lang: "de",
		Home: Address{City: "Kiel"},
	}
}

// broken lists "path: rule" of an InvalidError.
func broken(t *testing.T, err error) []string {
	t.Helper()
	var invalid *domain.InvalidError
	require.ErrorAs(t, err, &invalid)
	list := make([]string, len(invalid.Fields))
	for i, f := range invalid.Fields {
		list[i] = f.String()
	}
	return list
}

func TestValidateListsEveryFieldByItsJSONName(t *testing.T) {
	require.NoError(t, domain.Validate(goodOrder()))

	o := goodOrder()
	o.Meta, o.ID, o.Email, o.Lang, o.Color, o.Secret, o.Bare = Meta{}, uuid.Nil, "nobody", "fr", "red!", "long", -1
	o.Home, o.Work = Address{Zip: "1"}, &Address{}
	o.Items = []Address{{City: "Bonn"}, {Zip: "123456"}}
	o.Tags = []string{"ok", "not ok"}
	o.Stock = map[string]Address{"de": {}, "usa": {City: "Reno"}}
	for _, v := range []any{o, &o} {
		err := domain.Validate(v)
		require.Equal(t, []string{
			"Bare: gte=0", "Secret: max=3", "color: len=3|len=7", "confirm: eqfield=Email", "email: email",
			"home.city: required", "home.zip: len=5", "id: required", "items[1].city: required", "items[1].zip: len=5",
			"lang: oneof=de en", "source: required", "stock[de].city: required", "stock[usa]: len=2",
			"tags[1]: alpha", "work.city: required",
		}, broken(t, err))
		require.ErrorContains(t, err, "invalid domain_test.Order: Bare: gte=0; Secret: max=3; ")
		require.NotContains(t, err.Error(), "nobody", "values may be secret")
	}
}

type Pair[A, B any] struct {
	First  A `json:"first" validate:"required"`
	Second B `json:"second" validate:"required"`
}

func TestValidateWhateverTheValueIs(t *testing.T) {
	var none *Order
	anonymous := struct {
		A int `json:"a" validate:"min=1"`
	}{}
	bad := Address{}
	pp := &bad
	var boxed any = bad
	for _, c := range []struct {
		name  string
		value any
		want  []string
	}{
		{"nil", nil, nil},
		{"nil pointer", none, nil},
		{"text", "x", nil},
		{"number", 42, nil},
		{"time", time.Now(), nil},
		{"bytes", make([]byte, 10), nil},
		{"function", func() {}, nil},
		{"untyped JSON", map[string]any{"a": []any{1, "b", nil}}, nil},
		{"list", []Address{{City: "Bonn"}, {}}, []string{"[1].city: required"}},
		{"list of lists", [][]*Address{{}, {nil, {}}}, []string{"[1][1].city: required"}},
		{"array", [1]Address{}, []string{"[0].city: required"}},
		{"map", map[string]Address{"x": {}, "y": {City: "Bonn"}}, []string{"[x].city: required"}},
		{"within any", map[int]any{7: Address{}}, []string{"[7].city: required"}},
		{"pointers", &pp, []string{"city: required"}},
		{"pointer to any", &boxed, []string{"city: required"}},
		{"no type name", anonymous, []string{"a: min=1"}},
		{"type parameters with dots", Pair[Address, *uuid.UUID]{},
			[]string{"first: required", "second: required"}},
		{"a list of them", []Pair[string, uuid.UUID]{{First: "x"}}, []string{"[0].second: required"}},
		{"embedded pointer", struct {
			*Meta `validate:"required"`
		}{}, []string{"required"}},
		{"embedded pointer in a list", []struct {
			*Meta `validate:"required"`
		}{{}}, []string{"[0]: required"}},
		{"optional pointer", struct {
			A *Address `validate:"omitempty"`
		}{}, nil},
	} {
		t.Run(c.name, func(t *testing.T) {
			err := domain.Validate(c.value)
			if c.want == nil {
				require.NoError(t, err)
				return
			}
			require.Equal(t, c.want, broken(t, err))
		})
	}
}

type Node struct {
	Name   string `json:"name" validate:"required"`
	Next   *Node  `json:"next,omitempty"`
	Parent *Node  `json:"-" validate:"-"`
}

type pointless *pointless

func TestValidateSurvivesWhatRefersBackToItself(t *testing.T) {
	ring := &Node{Name: "a"}
	ring.Next = &Node{Name: "b", Next: ring}
	var invalid *domain.InvalidError
	require.ErrorAs(t, domain.Validate(ring), &invalid)
	require.ErrorContains(t, invalid, "invalid domain_test.Node: the value is cyclic")

	list := []any{nil}
	list[0] = list
	require.ErrorAs(t, domain.Validate(list), &invalid)
	m := map[string]any{}
	m["m"] = m
	require.ErrorAs(t, domain.Validate(m), &invalid)
	var p pointless
	p = &p
	require.ErrorAs(t, domain.Validate(p), &invalid)

	child := &Node{Name: "child", Parent: &Node{Name: "parent"}}
	child.Parent.Next = child
	require.NoError(t, domain.Validate(child), "a field that isn't followed may point back")

	deep := &Node{Name: "last"}
	for range 1000 {
		deep = &Node{Name: "n", Next: deep}
	}
	require.NoError(t, domain.Validate(deep))

	objects := func(n int) []byte {
		return []byte(strings.Repeat(`{"next":`, n) + `{"name":"x"}` + strings.Repeat(`}`, n))
	}
	_, err := domain.Decode[Node](objects(999))
	require.Len(t, broken(t, err), 999)
	require.ErrorContains(t, err, "; and 979 more")
	_, err = domain.Decode[Node](objects(9000))
	require.ErrorContains(t, err, "nested too deeply")
}

type badParam struct {
	Text string `json:"text" validate:"max=ten"`
}

type badName struct {
	Text string `json:"text" validate:"requird"`
}

type panicky string

func (panicky) ValidatorValue() any { panic("a bug in a method") }

func TestABadTagIsAnErrorNotAPanic(t *testing.T) {
	var bad *domain.TypeError
	require.ErrorAs(t, domain.Validate(badParam{Text: "x"}), &bad)
	require.Equal(t, "domain_test.badParam", bad.Type)
	require.Equal(t, "Text", bad.Field)
	require.ErrorContains(t, bad, `field Text of domain_test.badParam: rule "max=ten" can't work: strconv.ParseInt`)

	for range 2 { // the second time too
		err := domain.Validate([]badName{{}})
		require.EqualError(t, err,
			`field Text of domain_test.badName: rule "requird" can't work: Undefined validation function 'requird'`)
	}
	err := domain.Validate(struct {
		P panicky `validate:"required"`
	}{})
	require.ErrorAs(t, err, &bad)
	require.ErrorContains(t, err, "a bug in a method")
}

func TestCheckTypeFindsEveryBadTag(t *testing.T) {
	type inner struct {
		N int `validate:"min=1.5"`
	}
	type outer struct {
		A string            `validate:"required,nosuch"`
		B string            `validate:"max=4,dive"`
		C []string          `validate:"dive,keys,len=2,endkeys"`
		D map[string]int    `validate:"dive,keys,min=a,endkeys,max=b"`
		E []string          `validate:"len=3|oops"`
		F string            `validate:"required,,max=3"`
		G map[string]*inner `validate:"dive"`
		H bool              `validate:"gt=1"`
		I chan int
		J func()               `json:"-"`
		K map[[2]int]string    `json:"k"`
		L []fmt.Stringer       `json:"l"`
		M []complex64          `json:"m"`
		N time.Duration        `validate:"max=soon"`
		O string               `validate:"required_if=A"`
		P struct{ Q chan int } `json:"-" validate:"-"`
		r chan int
		S int `validate:"dive"`
	}
	err := domain.CheckType[[]outer]()
	var got []string
	for line := range strings.Lines(err.Error()) {
		line = strings.TrimPrefix(strings.TrimSpace(line), "field ")
		field, rest, _ := strings.Cut(line, " ")
		_, problem, _ := strings.Cut(rest, ": ")
		got = append(got, field+" "+problem)
	}
	require.Equal(t, []string{
		`A rule "nosuch" can't work: Undefined validation function 'nosuch'`,
		`B dive needs a list or a map, not a string`,
		`C keys must come right after the dive into a map`,
		`D rule "min=a" can't work: strconv.ParseInt: parsing "a": invalid syntax`,
		`D rule "max=b" can't work: strconv.ParseInt: parsing "b": invalid syntax`,
		`E rule "oops" can't work: Undefined validation function 'oops'`,
		`F the tag "required,,max=3" has an empty rule: take a comma out`,
		`N rule "min=1.5" can't work: strconv.ParseInt: parsing "1.5": invalid syntax`,
		`H rule "gt=1" can't work: Bad field type bool`,
		`I a chan has no JSON form; tag it json:"-"`,
		`K a map whose keys are of type [2]int has no JSON form; tag it json:"-"`,
		`L an interface with methods has no JSON form; tag it json:"-"`,
		`M a complex64 has no JSON form; tag it json:"-"`,
		`N rule "max=soon" can't work: strconv.ParseInt: parsing "soon": invalid syntax`,
		`S dive needs a list or a map, not an int`,
	}, got)
	_ = outer{}.r
}

type (
	tree  []tree
	left  []right
	right map[string]left
)

func TestCheckTypeAcceptsWhatWorks(t *testing.T) {
	type wide struct {
		Order
		Node
		Age    int               `validate:"gte=0,lte=150"`
		Wait   time.Duration     `validate:"min=1s,max=1h"`
		When   time.Time         `validate:"required,gt"`
		Day    string            `validate:"datetime=2006-01-02"`
		URL    *string           `validate:"omitempty,url"`
		Any    any               `validate:"required"`
		Uniq   []*Node           `validate:"unique=Name,min=1"`
		Uniq2  []Node            `validate:"unique=Name"`
		Map    map[string][]int  `validate:"dive,keys,alpha,endkeys,max=3,dive,gt=0"`
		IfA    string            `validate:"required_if=Age 3,excluded_with=Day"`
		After  time.Time         `validate:"gtfield=When"`
		Ratio  float64           `validate:"gt=0.5,lt=1e3"`
		Raw    []byte            `validate:"max=10"`
		On     bool              `validate:"required|eq=false"`
		Color  string            `validate:"iscolor"`
		Letter string            `validate:"oneof='a b' c,excludesall=!@,containsany=xy"`
		UUID   uuid.UUID         `validate:"uuid"`
		Struct Address           `validate:"required,structonly"`
		Arr    [3]Address        `validate:"dive"`
		Byte   uint8             `validate:"min=1,max=255"`
		Tree   tree              `json:"tree"`
		Left   left              `json:"left"`
		P      pointless         `json:"p" validate:"omitempty"`
		Text   map[uuid.UUID]int `json:"text"`
	}
	for range 2 { // the second time it is remembered
		require.EqualError(t, domain.CheckType[[]chan int](), "[]chan int: a chan has no JSON form")
		require.NoError(t, domain.CheckType[wide]())
	}
	require.NoError(t, domain.CheckType[*map[string][]wide]())
	require.NoError(t, domain.CheckType[string]())
	require.NoError(t, domain.CheckType[any]())
}

func TestValidateAtOnceFromManyGoroutines(t *testing.T) {
	type fresh struct {
		A Address  `json:"a"`
		B badName  `json:"b" validate:"-"`
		C []string `json:"c" validate:"dive,alpha"`
	}
	var wg sync.WaitGroup
	errs := make([]error, 64)
	for i := range errs {
		wg.Go(func() {
			errs[i] = domain.Validate(fresh{C: []string{"1"}})
			errs[i] = errors.Join(errs[i], domain.Validate(badName{}))
		})
	}
	wg.Wait()
	for _, err := range errs {
		require.Equal(t, []string{"a.city: required", "c[0]: alpha"}, broken(t, err))
	}
}
