"""`python -m sohot`."""

from .cli import main

if __name__ == "__main__":
    main()
