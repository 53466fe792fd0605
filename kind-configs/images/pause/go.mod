module spiritlevel.dev/images/pause

go 1.26
