"""`python -m echolearn.cli` is the command echolearn."""

from echolearn.cli.main import main

main()
