package transfer

// Limit sets how many entries a transaction has, and how many trees are in memory, so that a small database needs several
// transactions, and loads trees again.
func Limit(entries, trees int) { batch, maxTrees = entries, trees }
