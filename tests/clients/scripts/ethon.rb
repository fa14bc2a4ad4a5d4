# One write by Ethon, which reaches libcurl by FFI. Arguments: URL, seconds, user:password or nothing, body.
require 'ethon'

url, seconds, user, body = ARGV
easy = Ethon::Easy.new(followlocation: true, accept_encoding: '', timeout: seconds.to_i)
easy.http_request(url, :post, body: body, headers: { 'Content-Type' => 'application/json' })
easy.userpwd = user unless user.empty?
code = easy.perform
number = Ethon::Curl.enum_type(:easy_code)[code]
warn "#{code}: #{Ethon::Curl.easy_strerror(code)}" unless code == :ok
puts "#{easy.response_body}\nsaw status=#{easy.response_code} code=#{number}"
exit(code != :ok ? 1 : easy.response_code >= 400 ? 22 : 0)
