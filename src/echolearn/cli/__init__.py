"""The command echolearn."""

from echolearn.cli.main import main as main
