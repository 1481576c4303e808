"""What every namespace has for those who run in it: an account, the certificate to trust, and tokens on request."""
