module github.com/redlatch/redlatch

go 1.25.0
