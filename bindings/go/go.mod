module etude

go 1.18
