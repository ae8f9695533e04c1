package lua

// KeyTypes is about keys, whatever is stored there.
var KeyTypes = load("key.types")
