# One write by curb, which runs even a single one by curl_multi. Arguments: URL, seconds, user:password or nothing, body.
require 'curb'

url, seconds, user, body = ARGV
curl = Curl::Easy.new(url)
curl.timeout = seconds.to_i
curl.headers['Content-Type'] = 'application/json'
curl.userpwd = user unless user.empty?
code = 0
begin
  curl.http_post(body)
rescue Curl::Err::CurlError => e
  warn "#{e.class}: #{e.message}"
  code = { 'TimeoutError' => 28, 'GotNothingError' => 52, 'PartialFileError' => 18, 'RecvError' => 56 }[e.class.name.split('::').last] || 999
end
puts "#{curl.body_str}\nsaw status=#{curl.response_code} code=#{code}"
exit(code != 0 ? 1 : curl.response_code >= 400 ? 22 : 0)
