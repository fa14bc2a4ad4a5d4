# One write by R's curl, which runs every request by curl_multi and gives no CURLcode away. Arguments: URL, seconds,
# user:password or nothing, body.
library(curl)
args <- commandArgs(TRUE)
texts <- c("Empty reply" = 52, "timed out" = 28, "outstanding read data remaining" = 18, "bytes remaining" = 18, "bytes missing" = 18, "sendonce" = 56)
handle <- new_handle(timeout = as.integer(args[2]), postfields = args[4])
handle_setheaders(handle, "Content-Type" = "application/json")
if (nzchar(args[3])) handle_setopt(handle, userpwd = args[3])
answer <- tryCatch(curl_fetch_memory(args[1], handle), error = function(problem) {
  text <- conditionMessage(problem)
  message(text)
  code <- texts[vapply(names(texts), grepl, NA, text, fixed = TRUE)]
  cat(sprintf("\nsaw status=0 code=%d\n", c(code, 999)[[1]]))
  quit(status = 1)
})
cat(sprintf("%s\nsaw status=%d code=0\n", rawToChar(answer$content), answer$status_code))
quit(status = if (answer$status_code >= 400) 22 else 0)
