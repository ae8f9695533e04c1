package holdctx

// Doubt is a context key. What is held asks its server at once whether the server
// still has it, and answers true. What was detached asks nobody, and answers
// false. Only redlatchtest has reason to doubt: it has just taken away what is
// held.
type Doubt struct{}
