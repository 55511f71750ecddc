from echolearn.cli.main import main

main()
