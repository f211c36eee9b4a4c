from skdare.cli import main

main()
