# One write by Ethon, which reaches libcurl by FFI. Arguments: URL, seconds, user:password or nothing, body, fields|form,
# a file with the body.
require 'ethon'

url, seconds, user, body, kind, file = ARGV
easy = Ethon::Easy.new(followlocation: true, accept_encoding: '', timeout: seconds.to_i)
if kind == 'form'
  easy.http_request(url, :post, body: { note: 'hello', order: File.new(file) })
else
  easy.http_request(url, :post, body: body, headers: { 'Content-Type' => 'application/json' })
end
easy.userpwd = user unless user.empty?
code = easy.perform
number = Ethon::Curl.enum_type(:easy_code)[code]
warn "#{code}: #{Ethon::Curl.easy_strerror(code)}" unless code == :ok
puts "#{easy.response_body}\nsaw status=#{easy.response_code} code=#{number}"
exit(code != :ok ? 1 : easy.response_code >= 400 ? 22 : 0)
