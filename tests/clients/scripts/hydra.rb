# One write by Typhoeus' Hydra, curl_multi by FFI. Arguments: URL, seconds, user:password or nothing, body.
require 'typhoeus'

url, seconds, user, body = ARGV
hydra = Typhoeus::Hydra.new
request = Typhoeus::Request.new(url, method: :put, body: body, timeout: seconds.to_i,
                                headers: { 'Content-Type' => 'application/json' }, **(user.empty? ? {} : { userpwd: user }))
hydra.queue(request)
hydra.run
answer = request.response
code = answer.return_code
number = Ethon::Curl.enum_type(:easy_code)[code]
warn "#{code}: #{answer.return_message}" unless code == :ok
puts "#{answer.body}\nsaw status=#{answer.code} code=#{number}"
exit(code != :ok ? 1 : answer.code >= 400 ? 22 : 0)
