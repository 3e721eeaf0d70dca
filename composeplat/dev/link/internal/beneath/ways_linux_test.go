//go:build !portable

package beneath

import "testing"

// bothWays runs a test with the kernel's own resolution, and with the one that is done by hand.
func bothWays(t *testing.T, test func(t *testing.T)) {
	t.Run("at once", test)
	t.Run("by hand", func(t *testing.T) {
		before := withoutOpenat2.Swap(true)
		defer withoutOpenat2.Store(before)
		test(t)
	})
}
