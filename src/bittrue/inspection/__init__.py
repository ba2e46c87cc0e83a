"""What there is to say about a format, a number, a block, a cast or a parameter word: records, for faces to draw.

The command line and the explorer both print what is found here; nothing here prints. Import the modules: `numbers`
(exact numbers as text), `catalogue` (formats), `number` (one number in one format), `line` (what a format has between
two numbers), `blocks`, `casts`, `words` (Fixpipe's parameters, and an accumulator on its way through them) and
`vectors` (the inputs at which rules part).
"""
