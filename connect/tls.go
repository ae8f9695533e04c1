package connect

import (
	"crypto/tls"
	"crypto/x509"
	"errors"
	"fmt"

	"github.com/redlatch/redlatch/internal/bounded"
)

// TLS says how connections are encrypted. The zero value verifies the server's
// certificate and name with the certificate authorities of the system, and uses
// TLS 1.2 or newer.
type TLS struct {
	// CAFile is a file in PEM with the certificates of the authorities that are
	// trusted instead of the system's.
	CAFile string

	// CertFile and KeyFile are files in PEM with the client's certificate and its
	// key. Set both or none.
	CertFile, KeyFile string

	// ServerName is the name that the client asks for (SNI), and that the server's
	// certificate must have. Empty means the host in each address.
	ServerName string

	// MinVersion is the lowest version that is used, as in crypto/tls. Zero means
	// tls.VersionTLS12, and nothing lower is allowed.
	MinVersion uint16

	// CipherSuites are the suites for TLS 1.2, as in crypto/tls. None means Go's
	// choice.
	CipherSuites []uint16

	// Verify says what of the server's certificate is verified.
	Verify Verification

	// Truststore and Keystore are Java files that Redisson's configuration names
	// and that Go cannot read. Open refuses them unless CAFile, or CertFile and
	// KeyFile, replace them.
	Truststore, Keystore string
}

// Verification says what of the server's certificate is verified.
type Verification int

// The levels of verification.
const (
	VerifyAll  Verification = iota // that an authority vouches for it, and for the server's name
	VerifyCA                       // that an authority vouches for it, under whatever name
	VerifyNone                     // nothing: anybody can be the server
)

// String returns "all", "authority" or "nothing".
func (v Verification) String() string {
	switch v {
	case VerifyAll:
		return "all"
	case VerifyCA:
		return "authority"
	case VerifyNone:
		return "nothing"
	}
	return fmt.Sprintf("Verification(%d)", int(v))
}

// config reads the files.
func (t *TLS) config() (*tls.Config, error) {
	if t == nil {
		return nil, nil
	}
	c := &tls.Config{ServerName: t.ServerName, MinVersion: max(t.MinVersion, tls.VersionTLS12), CipherSuites: t.CipherSuites}
	if t.MinVersion != 0 && t.MinVersion < tls.VersionTLS12 {
		return nil, errors.New("connect: TLS before 1.2 is not spoken")
	}
	if t.Truststore != "" && t.CAFile == "" {
		return nil, javaStore("sslTruststore", "certificates", "CAFile")
	}
	if t.Keystore != "" && t.CertFile == "" {
		return nil, javaStore("sslKeystore", "certificate and key", "CertFile and TLS.KeyFile")
	}
	if t.CAFile != "" {
		pem, err := bounded.ReadFile(t.CAFile, bounded.Text)
		if err != nil {
			return nil, fmt.Errorf("connect: the certificates of the authorities: %w", err)
		}
		c.RootCAs = x509.NewCertPool()
		if !c.RootCAs.AppendCertsFromPEM(pem) {
			return nil, fmt.Errorf("connect: %s has no certificate in PEM", t.CAFile)
		}
	}
	if (t.CertFile == "") != (t.KeyFile == "") {
		return nil, errors.New("connect: a client's certificate and its key go together: one of the two files is missing")
	}
	if t.CertFile != "" {
		pair, err := keyPair(t.CertFile, t.KeyFile)
		if err != nil {
			return nil, fmt.Errorf("connect: the client's certificate: %w", err)
		}
		c.Certificates = []tls.Certificate{pair}
	}
	switch t.Verify {
	case VerifyAll:
	case VerifyCA:
		c.InsecureSkipVerify = true // the verification below replaces Go's
		c.VerifyConnection = func(state tls.ConnectionState) error { return verifyChain(state, c.RootCAs) }
	case VerifyNone:
		c.InsecureSkipVerify = true // asked for, by name
	default:
		return nil, fmt.Errorf("connect: TLS.Verify is %v", t.Verify)
	}
	return c, nil
}

// keyPair reads a certificate and its key.
func keyPair(certFile, keyFile string) (tls.Certificate, error) {
	cert, err := bounded.ReadFile(certFile, bounded.Text)
	if err != nil {
		return tls.Certificate{}, err
	}
	key, err := bounded.ReadFile(keyFile, bounded.Text)
	if err != nil {
		return tls.Certificate{}, err
	}
	return tls.X509KeyPair(cert, key)
}

func javaStore(key, what, fields string) error {
	return fmt.Errorf("connect: %s: Go cannot read Java's key stores; export the %s as PEM and name the file in TLS.%s", key, what, fields)
}

// verifyChain verifies that one of the roots vouches for the server, and not for
// which name.
func verifyChain(state tls.ConnectionState, roots *x509.CertPool) error {
	opt := x509.VerifyOptions{Roots: roots, Intermediates: x509.NewCertPool()}
	for _, c := range state.PeerCertificates[1:] {
		opt.Intermediates.AddCert(c)
	}
	_, err := state.PeerCertificates[0].Verify(opt)
	return err
}
