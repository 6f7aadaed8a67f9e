-- 4 KiB PUT for wrk
wrk.method = "PUT"
wrk.body = string.rep("0123456789abcdef", 256)
