package notify

// Subscriptions counts the keys that hold subscriptions.
func Subscriptions(n *Notifier) int {
	n.mu.Lock()
	defer n.mu.Unlock()
	return len(n.changes) + len(n.ends)
}
