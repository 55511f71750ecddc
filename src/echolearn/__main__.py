"""`python -m echolearn` is the command echolearn."""

from echolearn.cli.main import main

main()
