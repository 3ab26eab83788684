// node rhea_security.js JSON
//
// One message with rhea, from a sender at one router to a receiver at another, by a mechanism and TLS that are told.
// Prints the body as JSON, and ends when standard input does.
'use strict';

const fs = require('fs');
const rhea = require('rhea');

const told = JSON.parse(process.argv[2]);

function connect(port) {
    const container = rhea.create_container({ id: told.address });
    const options = { host: 'localhost', port, reconnect: false, enable_sasl_external: told.mechanism === 'EXTERNAL' };
    if (told.user) Object.assign(options, { username: told.user, password: told.password });
    else if (told.mechanism === 'ANONYMOUS') options.username = 'anonymous';
    if (told.ca) Object.assign(options, { transport: 'tls', ca: fs.readFileSync(told.ca), rejectUnauthorized: true });
    if (told.certificate) {
        const pem = fs.readFileSync(told.certificate);
        Object.assign(options, { key: pem, cert: pem });
    }
    return container.connect(options);
}

connect(told.ports[1]).open_receiver(told.address).on('message', (context) => {
    process.stdout.write(JSON.stringify(context.message.body) + '\n');
});
connect(told.ports[0]).open_sender(told.address).once('sendable', (context) => {
    context.sender.send({ body: 'x'.repeat(1000) });
});
process.stdin.on('end', () => process.exit(0)).resume();
