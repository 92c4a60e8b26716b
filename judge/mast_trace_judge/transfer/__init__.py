"""Takes runs in from files of other programs, and gives out runs with verdicts and labels."""
