"""Mathematics: a parser, values, and keys made of them."""
