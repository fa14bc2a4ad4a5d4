<?php
// POSTs on one warm handle: for each number read, so many requests, and the microseconds all of them took.
$c = curl_init($argv[1]);
curl_setopt($c, CURLOPT_RETURNTRANSFER, true);
$n = 0;
while (($line = fgets(STDIN)) !== false) {
    $began = hrtime(true);
    for ($i = 0; $i < (int) $line; $i++) {
        curl_setopt($c, CURLOPT_POSTFIELDS, '{"amount": 500, "customer": "c1", "n": ' . ++$n . '}');
        curl_exec($c);
    }
    printf("%.1f\n", (hrtime(true) - $began) / 1000);
    flush();
}
