module kinf

go 1.24
