// One write by node-libcurl, which runs libcurl by curl_multi_socket_action under libuv. Arguments: URL, seconds,
// user:password or nothing, body. NODE_PATH says where it was built.
const { Curl } = require('node-libcurl');

const [url, seconds, user, body] = process.argv.slice(2);
const curl = new Curl();
curl.setOpt('URL', url);
curl.setOpt('POSTFIELDS', body);
curl.setOpt('TIMEOUT', Number(seconds));
curl.setOpt('HTTPHEADER', ['Content-Type: application/json']);
if (user)
  curl.setOpt('USERPWD', user);
curl.on('end', (status, answer) => {
  console.log(`${answer}\nsaw status=${status} code=0`);
  curl.close();
  process.exitCode = status >= 400 ? 22 : 0;
});
curl.on('error', (problem, code) => {
  console.error(problem.message);
  console.log(`\nsaw status=0 code=${code}`);
  curl.close();
  process.exitCode = 1;
});
curl.perform();
