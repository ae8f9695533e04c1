package lua

// Scripts about keys, whatever is stored there.
var KeyTypes = load("key.types")
