// Command pack writes archives and images whose bytes depend on nothing but what
// is in them:
//
//	pack archive FILE FOLDER              FILE is a .tar.gz, a .tgz or a .zip; it has FOLDER, under its name
//	pack image FILE VERSION ARCH=FOLDER...  FILE is an OCI layout in a tar, with an image for each ARCH
//	pack roots FILE                       FILE gets the certificate authorities of Mozilla, in PEM
//
// Every file has the time of SOURCE_DATE_EPOCH, root as its owner, and the mode
// 0644 or 0755.
package main

import (
	"archive/tar"
	"archive/zip"
	"bytes"
	"compress/gzip"
	"encoding/pem"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path"
	"path/filepath"
	"strconv"
	"strings"
	"time"

	"golang.org/x/crypto/x509roots/fallback/bundle"
)

func main() {
	if err := run(os.Args[1:]); err != nil {
		fmt.Fprintln(os.Stderr, "pack:", err)
		os.Exit(1)
	}
}

func run(args []string) error {
	epoch, err := strconv.ParseInt(os.Getenv("SOURCE_DATE_EPOCH"), 10, 64)
	if err != nil {
		return fmt.Errorf("SOURCE_DATE_EPOCH: %w", err)
	}
	at := time.Unix(epoch, 0).UTC()
	switch {
	case len(args) == 3 && args[0] == "archive":
		files, err := read(args[2], filepath.Base(args[2]))
		if err != nil {
			return err
		}
		return archive(args[1], files, at)
	case len(args) > 3 && args[0] == "image":
		return image(args[1], args[2], args[3:], at)
	case len(args) == 2 && args[0] == "roots":
		return os.WriteFile(args[1], roots(), 0o644) //nolint:gosec // everybody may know whom the image trusts
	}
	return errors.New("usage: pack archive FILE FOLDER | pack image FILE VERSION ARCH=FOLDER... | pack roots FILE")
}

// A file is what goes into an archive: a folder if its name ends with a slash.
type file struct {
	name string
	mode int64
	data []byte
}

// read returns what a folder has, in the order of names, as if the folder were
// called name.
func read(folder, name string) (files []file, err error) {
	root, err := os.OpenRoot(folder)
	if err != nil {
		return nil, err
	}
	defer func() { err = errors.Join(err, root.Close()) }()
	err = fs.WalkDir(root.FS(), ".", func(at string, entry fs.DirEntry, err error) error {
		if err != nil {
			return err
		}
		f := file{name: path.Join(name, at), mode: 0o755}
		if entry.IsDir() {
			if f.name != "." {
				f.name += "/"
				files = append(files, f)
			}
			return nil
		}
		info, err := entry.Info()
		if err != nil {
			return err
		}
		if !info.Mode().IsRegular() {
			return fmt.Errorf("%s is neither a file nor a folder", at)
		}
		if info.Mode()&0o100 == 0 {
			f.mode = 0o644
		}
		f.data, err = root.ReadFile(at)
		files = append(files, f)
		return err
	})
	return files, err
}

// archive writes the kind of archive that the name of the file says.
func archive(to string, files []file, at time.Time) error {
	var out bytes.Buffer
	write := func() error { return compressed(&out, files, at) }
	if strings.HasSuffix(to, ".zip") {
		write = func() error { return zipped(&out, files, at) }
	}
	if err := write(); err != nil {
		return err
	}
	return os.WriteFile(to, out.Bytes(), 0o644) //nolint:gosec // it is for everybody
}

func compressed(to io.Writer, files []file, at time.Time) error {
	z, err := gzip.NewWriterLevel(to, gzip.BestCompression)
	if err != nil {
		return err
	}
	return errors.Join(tarred(z, files, at), z.Close())
}

func tarred(to io.Writer, files []file, at time.Time) error {
	w := tar.NewWriter(to)
	for _, f := range files {
		kind := byte(tar.TypeReg)
		if strings.HasSuffix(f.name, "/") {
			kind = tar.TypeDir
		}
		header := &tar.Header{Typeflag: kind, Name: f.name, Mode: f.mode, Size: int64(len(f.data)), ModTime: at, Format: tar.FormatUSTAR}
		if err := w.WriteHeader(header); err != nil {
			return err
		}
		if _, err := w.Write(f.data); err != nil {
			return err
		}
	}
	return w.Close()
}

func zipped(to io.Writer, files []file, at time.Time) error {
	w := zip.NewWriter(to)
	for _, f := range files {
		header := &zip.FileHeader{Name: f.name, Method: zip.Deflate, Modified: at}
		header.SetMode(fs.FileMode(f.mode))
		if strings.HasSuffix(f.name, "/") {
			header.Method = zip.Store
			header.SetMode(fs.FileMode(f.mode) | fs.ModeDir)
		}
		part, err := w.CreateHeader(header)
		if err != nil {
			return err
		}
		if _, err := part.Write(f.data); err != nil {
			return err
		}
	}
	return w.Close()
}

// roots returns Mozilla's authorities but those that it trusts only with
// conditions, which a file cannot say.
func roots() []byte {
	var out bytes.Buffer
	for root := range bundle.Roots() {
		if root.Constraint == nil {
			// A bytes.Buffer takes everything.
			_ = pem.Encode(&out, &pem.Block{Type: "CERTIFICATE", Bytes: root.Certificate})
		}
	}
	return out.Bytes()
}
