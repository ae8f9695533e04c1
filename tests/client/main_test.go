package client

import "context"

// bg is the context of those that need not leave.
var bg = context.Background()
