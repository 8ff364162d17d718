package engine

import (
	"context"
	"errors"
	"fmt"

	"github.com/tasq-dev/tasq/engine/internal/commit"
	"github.com/tasq-dev/tasq/net"
	"github.com/tasq-dev/tasq/store"
	"github.com/tasq-dev/tasq/store/state"
	"github.com/tasq-dev/tasq/workflow"
	"github.com/tasq-dev/tasq/workitem"
)

// A dry run for another process answers with changes and not with trees: that process reads the trees by itself, and hides what its user
// may not see.

// dryRun executes a command of the kind dry-run.
func (c *controls) dryRun(tx *commit.Tx, cmd *workflow.Command) (*workflow.Preview, error) {
	tried, err := cmd.Tried()
	if err != nil {
		return nil, err
	}
	p, err := c.e.tryIn(tx, &tried)
	if err != nil {
		return nil, err
	}
	w := &workflow.Preview{Result: p.Result}
	for _, t := range p.Trees {
		w.Trees = append(w.Trees, workflow.PreviewTree{Root: t.Tree.Root, Seq: t.Tree.Case(t.Tree.Root).LastSeq,
			Changes: state.AppendChanges(nil, t.Changes, t.Tree)})
	}
	for _, s := range p.Settings {
		w.Settings = append(w.Settings, workflow.PreviewSetting(s))
	}
	return w, nil
}

// ReadPreview decodes what the engine of another process has answered to [workflow.DryRun], with a reader of the same database. A case
// that has changed since is shown as it was. The error wraps [store.ErrConflict] if the command was tried on a state that was not committed.
func ReadPreview(ctx context.Context, r store.Reader, w *workflow.Preview) (Preview, error) {
	if w == nil {
		return Preview{}, errors.New("the answer of the other engine has no preview")
	}
	p := Preview{Result: w.Result}
	nets := netsOf(ctx, r)
	for i := range w.Trees {
		t, err := readTree(ctx, r, &w.Trees[i], nets.net)
		if err = errors.Join(err, nets.err); err != nil {
			return Preview{}, fmt.Errorf("case %s: %w", w.Trees[i].Root, err)
		}
		p.Trees = append(p.Trees, t)
	}
	for _, s := range w.Settings {
		p.Settings = append(p.Settings, PreviewSetting(s))
	}
	return p, nil
}

// readTree applies the changes of a dry run to the stored tree.
func readTree(ctx context.Context, r store.Reader, w *workflow.PreviewTree, nets func(string) *net.Net) (t PreviewTree, err error) {
	t.Tree, t.Before = state.NewTree(), state.NewTree()
	if w.Seq > 0 {
		stored, err := treeAt(ctx, r, w.Root, w.Seq)
		if err != nil {
			return t, err
		}
		t.Tree, t.Before = snapshot(stored), stored
	}
	ofCase := func(id workitem.CaseID) *net.Net {
		if c := t.Tree.Case(id); c != nil {
			return c.Net
		}
		return nil
	}
	if t.Changes, err = state.DecodeChanges(w.Changes, w.Root, state.Nets{Definition: nets, Case: ofCase}); err != nil {
		return t, err
	}
	t.Tree.Begin()
	for _, c := range t.Changes {
		if err := t.Tree.Apply(c); err != nil {
			return t, err
		}
	}
	t.Tree.End(w.Seq)
	return t, nil
}

// treeAt reads the tree that the command was tried on. A case that is busy may have changed since: then its history has that tree.
func treeAt(ctx context.Context, r store.Reader, root workitem.CaseID, seq int64) (*state.Tree, error) {
	t, err := r.Tree(ctx, root)
	if err != nil {
		return nil, err
	}
	if t.Case(root).LastSeq > seq {
		t = state.NewTree()
		if err := store.Replay(ctx, r, root, t, store.Moment{Seq: seq}, nil); err != nil {
			return nil, err
		}
	}
	if c := t.Case(root); c == nil || c.LastSeq != seq {
		return nil, fmt.Errorf("the command was tried on a state that is not stored; try it again: %w", store.ErrConflict)
	}
	return t, nil
}

// compiledNets compiles stored definitions as they are needed.
type compiledNets struct {
	read  func() ([]*store.Definition, error)
	known map[string]*net.Net
	err   error
}

func netsOf(ctx context.Context, r store.Reader) *compiledNets {
	return &compiledNets{read: func() ([]*store.Definition, error) { return r.Definitions(ctx) }}
}

// net returns the net of a definition; nil if there is none, or with err.
func (n *compiledNets) net(fingerprint string) *net.Net {
	if n.known == nil {
		n.known = make(map[string]*net.Net)
		defs, err := n.read()
		if err != nil {
			n.err = err
			return nil
		}
		for _, d := range defs {
			compiled, err := net.Compile(d.Net)
			if err != nil {
				n.err = err
				return nil
			}
			n.known[d.Fingerprint] = compiled
		}
	}
	return n.known[fingerprint]
}
