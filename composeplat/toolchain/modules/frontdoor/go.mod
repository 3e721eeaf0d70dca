module composeplat/toolchain/frontdoor

go 1.26
