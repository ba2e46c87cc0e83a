"""The explorer: a local page in the browser that shows what formats and the hardware's rules do to numbers.

`server` binds it to this machine alone, `app` is its Starlette application, `records` answers its questions in plain
records (the arithmetic is that of the package), `fields` reads what is asked. The page's scripts only draw.
"""
