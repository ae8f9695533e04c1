package overview

import "slices"

// HeldAs returns the names of what is listed that these owners have. They stand as
// the list does.
func (listing *Listing) HeldAs(owners []string) (names []string) {
	if len(owners) == 0 {
		return nil
	}
	for i := range listing.Locks {
		if slices.ContainsFunc(listing.Locks[i].Holders, func(h Holder) bool { return slices.Contains(owners, h.Owner) }) {
			names = append(names, listing.Locks[i].Name)
		}
	}
	return names
}

// WaitedForBy returns the names of what is listed for which a caller says that it
// waits that has something as this owner meanwhile.
func (listing *Listing) WaitedForBy(owner string) (names []string) {
	for i := range listing.Locks {
		if slices.ContainsFunc(listing.Locks[i].Waiting, func(c Claim) bool { return slices.Contains(c.Under, owner) }) {
			names = append(names, listing.Locks[i].Name)
		}
	}
	return names
}
