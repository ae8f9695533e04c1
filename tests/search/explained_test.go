package search

// explained says of mutants why nothing is wrong with them that a search could find.
var explained = map[string]string{}
