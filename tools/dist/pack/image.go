package main

import (
	"bytes"
	"crypto/sha256"
	"encoding/json"
	"fmt"
	"os"
	"slices"
	"strings"
	"time"
)

// The names of things in an OCI layout; see the OCI image specification.
const (
	typeIndex    = "application/vnd.oci.image.index.v1+json"
	typeManifest = "application/vnd.oci.image.manifest.v1+json"
	typeConfig   = "application/vnd.oci.image.config.v1+json"
	typeLayer    = "application/vnd.oci.image.layer.v1.tar+gzip"

	source = "https://github.com/redlatch/redlatch"
	// nobody is whom the image runs as. Kubernetes wants a number to see that it is
	// not root.
	nobody = "65532:65532"
)

type descriptor struct {
	MediaType   string            `json:"mediaType"`
	Digest      string            `json:"digest"`
	Size        int               `json:"size"`
	Platform    *platform         `json:"platform,omitempty"`
	Annotations map[string]string `json:"annotations,omitempty"`
}

type platform struct {
	Architecture string `json:"architecture"`
	OS           string `json:"os"`
}

type index struct {
	SchemaVersion int          `json:"schemaVersion"`
	MediaType     string       `json:"mediaType"`
	Manifests     []descriptor `json:"manifests"`
}

type manifest struct {
	SchemaVersion int          `json:"schemaVersion"`
	MediaType     string       `json:"mediaType"`
	Config        descriptor   `json:"config"`
	Layers        []descriptor `json:"layers"`
}

type config struct {
	platform

	Created time.Time `json:"created"`
	Config  struct {
		User       string
		Env        []string
		Entrypoint []string
		Labels     map[string]string
	} `json:"config"`
	RootFS  rootFS    `json:"rootfs"`
	History []history `json:"history"`
}

type rootFS struct {
	Type    string   `json:"type"`
	DiffIDs []string `json:"diff_ids"`
}

type history struct {
	Created time.Time `json:"created"`
	By      string    `json:"created_by"`
}

// A layout collects the blobs of an OCI layout.
type layout struct{ files []file }

func digest(data []byte) string { return fmt.Sprintf("sha256:%x", sha256.Sum256(data)) }

func (l *layout) add(mediaType string, data []byte) descriptor {
	d := descriptor{MediaType: mediaType, Digest: digest(data), Size: len(data)}
	name := "blobs/sha256/" + strings.TrimPrefix(d.Digest, "sha256:")
	if !slices.ContainsFunc(l.files, func(f file) bool { return f.name == name }) {
		l.files = append(l.files, file{name: name, mode: 0o644, data: data})
	}
	return d
}

func (l *layout) addJSON(mediaType string, v any) (descriptor, error) {
	data, err := json.Marshal(v)
	return l.add(mediaType, data), err
}

// image writes an image with one layer for each ARCH=FOLDER: the folder is all
// that is in it.
func image(to, version string, parts []string, at time.Time) error {
	l := &layout{}
	images := index{SchemaVersion: 2, MediaType: typeIndex}
	for _, part := range parts {
		arch, folder, ok := strings.Cut(part, "=")
		if !ok {
			return fmt.Errorf("%s is not ARCH=FOLDER", part)
		}
		one, err := l.one(version, platform{arch, "linux"}, folder, at)
		if err != nil {
			return err
		}
		images.Manifests = append(images.Manifests, one)
	}
	all, err := l.addJSON(typeIndex, images)
	if err != nil {
		return err
	}
	// The first name is what OCI's tools look for, the second is how docker load calls
	// the image.
	all.Annotations = map[string]string{"org.opencontainers.image.ref.name": version, "io.containerd.image.name": "redlatch:" + version}
	top, err := json.Marshal(index{SchemaVersion: 2, MediaType: typeIndex, Manifests: []descriptor{all}})
	if err != nil {
		return err
	}
	files := append([]file{
		{name: "oci-layout", mode: 0o644, data: []byte(`{"imageLayoutVersion":"1.0.0"}`)},
		{name: "index.json", mode: 0o644, data: top},
		{name: "blobs/", mode: 0o755},
		{name: "blobs/sha256/", mode: 0o755},
	}, l.files...)
	var out bytes.Buffer
	if err := tarred(&out, files, at); err != nil {
		return err
	}
	return os.WriteFile(to, out.Bytes(), 0o644) //nolint:gosec // it is for everybody
}

func (l *layout) one(version string, on platform, folder string, at time.Time) (descriptor, error) {
	files, err := read(folder, ".")
	if err != nil {
		return descriptor{}, err
	}
	var plain, packed bytes.Buffer
	if err := tarred(&plain, files, at); err != nil {
		return descriptor{}, err
	}
	if err := compressed(&packed, files, at); err != nil {
		return descriptor{}, err
	}
	c := config{platform: on, Created: at, RootFS: rootFS{"layers", []string{digest(plain.Bytes())}}, History: []history{{at, "scripts/dist.sh"}}}
	c.Config.User = nobody
	c.Config.Env = []string{"PATH=/usr/bin"}
	c.Config.Entrypoint = []string{"/usr/bin/redlatch"}
	c.Config.Labels = map[string]string{
		"org.opencontainers.image.title":    "redlatch",
		"org.opencontainers.image.version":  version,
		"org.opencontainers.image.source":   source,
		"org.opencontainers.image.licenses": "Apache-2.0",
	}
	m := manifest{SchemaVersion: 2, MediaType: typeManifest, Layers: []descriptor{l.add(typeLayer, packed.Bytes())}}
	if m.Config, err = l.addJSON(typeConfig, c); err != nil {
		return descriptor{}, err
	}
	d, err := l.addJSON(typeManifest, m)
	d.Platform = &on
	return d, err
}
