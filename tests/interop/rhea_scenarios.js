// node rhea_scenarios.js SCENARIO PORT_A PORT_B
//
// One scenario with rhea, the AMQP client for Node, across two routers; what was seen is printed as JSON.
'use strict';

const rhea = require('rhea');

const [scenario, portA, portB] = process.argv.slice(2);

function connect(port, options) {
    return rhea.create_container().connect({ host: '127.0.0.1', port: Number(port), reconnect: false, ...options });
}

function done(result) {
    process.stdout.write(JSON.stringify(result) + '\n', () => process.exit(0));
}

const scenarios = {
    // Every outcome, from a receiver at B to a sender at A.
    outcomes() {
        const total = 40;
        const result = { outcomes: {}, bodies: [], errors: [] };
        const receiver = connect(portB).open_receiver({ source: 'rhea/outcomes', autoaccept: false, credit_window: 10 });
        receiver.on('message', (context) => {
            const number = context.message.body;
            result.bodies.push(number);
            const delivery = context.delivery;
            // Each in a turn of its own: of several in one turn rhea 3.0.5 writes the second with the first one's outcome.
            setImmediate(() => {
                if (number % 4 === 0) delivery.accept();
                else if (number % 4 === 1) delivery.reject({ condition: 'rhea:no', description: 'not ' + number });
                else if (number % 4 === 2) delivery.release();
                else delivery.modified({ delivery_failed: true, undeliverable_here: false });
            });
        });
        const sender = connect(portA).open_sender('rhea/outcomes');
        let sent = 0;
        sender.on('sendable', () => {
            while (sent < total && sender.sendable()) {
                sender.send({ body: sent }, String(sent));
                sent += 1;
            }
        });
        function note(name) {
            return (context) => {
                const number = context.delivery.tag.toString();
                const state = context.delivery.remote_state;
                // rhea says `released` of what is modified too
                if (name === 'released' && state.delivery_failed !== undefined) return;
                result.outcomes[number] = (result.outcomes[number] || '') + name;
                if (name === 'rejected') result.errors.push(state.error.condition + ': ' + state.error.description);
            };
        }
        ['accepted', 'rejected', 'released', 'modified'].forEach((name) => sender.on(name, note(name)));
        let settled = 0;
        sender.on('settled', () => {
            settled += 1;
            if (settled === total) done(result);
        });
    },

    // Calls from A to a server at B, which answers to dynamic addresses through one anonymous sender.
    rpc() {
        const total = 200;
        const server = connect(portB);
        const answers = server.open_sender({ target: {} });
        server.open_receiver({ source: 'rhea/rpc', credit_window: 50 }).on('message', (context) => {
            const request = context.message;
            answers.send({ to: request.reply_to, correlation_id: request.message_id, body: request.body * 2 });
        });
        const client = connect(portA);
        const replies = client.open_receiver({ source: { dynamic: true }, credit_window: 50 });
        const result = { answers: {}, reply_to: '' };
        replies.on('receiver_open', () => {
            result.reply_to = replies.source.address;
            const sender = client.open_sender('rhea/rpc');
            let sent = 0;
            sender.on('sendable', () => {
                while (sent < total && sender.sendable()) {
                    sender.send({ message_id: sent, reply_to: result.reply_to, body: sent });
                    sent += 1;
                }
            });
        });
        let count = 0;
        replies.on('message', (context) => {
            result.answers[context.message.correlation_id] = context.message.body;
            count += 1;
            if (count === total) done(result);
        });
    },

    // One copy for each of two receivers at A and two at B.
    multicast() {
        const total = 20;
        const result = { bodies: [[], [], [], []], accepted: 0 };
        const address = 'openstack.org/om/rpc/multicast/rhea/topic';
        let open = 0;
        let seen = 0;
        const finish = connect(portA);
        [portA, portA, portB, portB].forEach((port, index) => {
            const receiver = connect(port).open_receiver(address);
            receiver.on('receiver_open', () => {
                open += 1;
                if (open === 4) begin();
            });
            receiver.on('message', (context) => {
                if (context.message.body === 'probe') {
                    if (!result.bodies[index].ready) {
                        result.bodies[index].ready = true;
                        if (result.bodies.every((bodies) => bodies.ready)) send();
                    }
                    return;
                }
                if (context.message.body === 'end') {
                    seen += 1;
                    if (seen === 4) done(result);
                    return;
                }
                result.bodies[index].push(context.message.body);
            });
        });
        // B learns of A's receivers a moment after they are attached: probes until all of them have heard one.
        const sender = connect(portB).open_sender(address);
        let sending = false;
        function begin() {
            sender.on('accepted', () => {
                if (sending) result.accepted += 1;
                else sender.send({ body: 'probe' });
            });
            sender.send({ body: 'probe' });
        }
        function send() {
            sending = true;
            for (let number = 0; number < total; number += 1) sender.send({ body: number });
            sender.send({ body: 'end' });
        }
        finish.on('disconnected', () => done({ error: 'disconnected' }));
    },

    // No credit before there is a receiver; what was sent before waits for it.
    late() {
        const result = { early_credit: null, bodies: [] };
        const sender = connect(portA).open_sender('rhea/late');
        sender.on('sender_open', () => {
            sender.connection.on('message', () => {});
            // A round trip of another kind, so that credit would be there if any came.
            const other = sender.connection.open_receiver({ source: { dynamic: true } });
            other.on('receiver_open', () => {
                result.early_credit = sender.credit;
                // Credit may come in several steps, each with an event of its own: one message all the same.
                sender.once('sendable', () => sender.send({ body: 'waited' }));
                connect(portB).open_receiver('rhea/late').on('message', (context) => {
                    result.bodies.push(context.message.body);
                    done(result);
                });
            });
        });
    },

    // Messages of several frames, both ways, their bytes unchanged.
    large() {
        const result = { sizes: [] };
        const sizes = [10, 20000, 1000000, 3000000];
        const receiver = connect(portB, { max_frame_size: 4096 }).open_receiver('rhea/large');
        receiver.on('message', (context) => {
            const body = context.message.body;
            if (!/^x*$/.test(body)) done({ error: 'changed' });
            result.sizes.push(body.length);
            if (result.sizes.length === sizes.length) done(result);
        });
        const sender = connect(portA, { max_frame_size: 16384 }).open_sender('rhea/large');
        sender.once('sendable', () => sizes.forEach((size) => sender.send({ body: 'x'.repeat(size) })));
    },

    // Pre-settled, more than one window's worth.
    settled() {
        const total = 1000;
        const result = { bodies: [] };
        connect(portB).open_receiver({ source: 'rhea/settled', credit_window: 100 }).on('message', (context) => {
            result.bodies.push(context.message.body);
            if (result.bodies.length === total) done(result);
        });
        const sender = connect(portA).open_sender({ target: 'rhea/settled', snd_settle_mode: 1 });
        let sent = 0;
        sender.on('sendable', () => {
            while (sent < total && sender.sendable()) {
                sender.send({ body: sent });
                sent += 1;
            }
        });
    },

    // SASL ANONYMOUS and no SASL layer; refusals as errors of the link.
    refused() {
        const result = { errors: [] };
        const connection = connect(portA, { username: 'anonymous' });
        const links = [
            connection.open_sender({ target: { address: 'x', capabilities: ['qd.router'] } }),
            connection.open_receiver({ source: 'amqp:/_topo/0/elsewhere/temp.x' }),
        ];
        links.forEach((link) => {
            link.on(link.is_sender() ? 'sender_error' : 'receiver_error', () => {
                result.errors.push(link.error.condition);
                if (result.errors.length === links.length) done(result);
            });
        });
    },
};

scenarios[scenario]();
