/** A certificate authority and a certificate for localhost and 127.0.0.1, made for these tests only, for servers and clients alike; valid for a century. */
import type { TlsOptions } from '../../src/transport/runtime.ts';

const ca = `-----BEGIN CERTIFICATE-----
MIIBijCCATGgAwIBAgIUWh7qYghWqAi0dJArNHjluX2C5yIwCgYIKoZIzj0EAwIw
GjEYMBYGA1UEAwwPc2luZ2xldCB0ZXN0IENBMCAXDTI2MTIwMTAyMzEzMFoYDzIx
MjYxMTA3MDIzMTMwWjAaMRgwFgYDVQQDDA9zaW5nbGV0IHRlc3QgQ0EwWTATBgcq
hkjOPQIBBggqhkjOPQMBBwNCAAQzPmv/jZj1Gp/H+AW+vhhmuUPfMMqLVXc9pY7n
GvF9jT9raMglP/9bsDPZpz8KL4Rbl/+aHGBd+ldTpQfowGBJo1MwUTAdBgNVHQ4E
FgQUmGCOHd21xCgr1MSoUmyrUSnY2JQwHwYDVR0jBBgwFoAUmGCOHd21xCgr1MSo
UmyrUSnY2JQwDwYDVR0TAQH/BAUwAwEB/zAKBggqhkjOPQQDAgNHADBEAiBAUfBY
bzlhWfUmv/KjuX8J2emqV7nqboHxMhe9lkN38AIgcUDytWv6Dq9+fp7XKXsUsXXU
uz0cuk1bZjUswbU0dD0=
-----END CERTIFICATE-----`;

const cert = `-----BEGIN CERTIFICATE-----
MIIBvDCCAWKgAwIBAgIUE4McN4qCmnW5oxJUigPhMTyVgRwwCgYIKoZIzj0EAwIw
GjEYMBYGA1UEAwwPc2luZ2xldCB0ZXN0IENBMCAXDTI2MTIwMTAyMzEzMFoYDzIx
MjYxMTA3MDIzMTMwWjAUMRIwEAYDVQQDDAlsb2NhbGhvc3QwWTATBgcqhkjOPQIB
BggqhkjOPQMBBwNCAAS5jos3bj5Fu/UC8Sj41NMZ8gm9cl9xzjJp9xeBhZvWGkVR
BZmqlKdIqkIlr23C+exKJcUSekkEiAfarlMzFm4ho4GJMIGGMBoGA1UdEQQTMBGC
CWxvY2FsaG9zdIcEfwAAATAJBgNVHRMEAjAAMB0GA1UdJQQWMBQGCCsGAQUFBwMB
BggrBgEFBQcDAjAdBgNVHQ4EFgQUu3b6FM3VHDQThrwRV5ZEWtn1FvowHwYDVR0j
BBgwFoAUmGCOHd21xCgr1MSoUmyrUSnY2JQwCgYIKoZIzj0EAwIDSAAwRQIgDd7L
hmHMkSmaXldpsD+YMjF4MIEQnVwfIJ2snWbFGSUCIQDa0O5CY3t5xwepwnITBPk4
5RGHPlF+zvY/DY2k/RDRIg==
-----END CERTIFICATE-----`;

const key = `-----BEGIN PRIVATE KEY-----
MIGHAgEAMBMGByqGSM49AgEGCCqGSM49AwEHBG0wawIBAQQgOjB5or4GKM6vKnRY
e8bytbe0xzVgbDAJyTVRorHUo3GhRANCAAS5jos3bj5Fu/UC8Sj41NMZ8gm9cl9x
zjJp9xeBhZvWGkVRBZmqlKdIqkIlr23C+exKJcUSekkEiAfarlMzFm4h
-----END PRIVATE KEY-----`;

export const testTls: Required<Omit<TlsOptions, 'clientCertificates'>> = { ca, cert, key };
