"""Workers of the suite: at the top of modules that other processes import, with their observations in the rows."""
