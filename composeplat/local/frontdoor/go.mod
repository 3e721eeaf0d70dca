module composeplat/frontdoor

go 1.26
