module github.com/redlatch/redlatch/redissonyaml

go 1.25.0

require (
	github.com/redlatch/redlatch v0.0.0
	go.yaml.in/yaml/v3 v3.0.6
)
