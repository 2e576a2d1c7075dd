# Login and TLS with a real broker: SCRAM and PLAIN, with and without TLS, certificates of clients, authorities; rights that are missing. What is refused is
# told, and no log has a secret.
# cells: pg18
# needs: kafka

use strict;
use warnings;

use CdcBridge::Env qw(new_folder run_program slurp);
use CdcBridge::Kafka;
use CdcBridge::KafkaExport;
use CdcBridge::Postgres;
use Test::More;

plan skip_all => 'openssl is not installed' unless grep { -x "$_/openssl" } split(/:/, $ENV{PATH});

# two authorities, and certificates of broker and client by the first
my $dir = new_folder('tls');
sub openssl { return run_program("$dir/log", 'openssl', @_); }
for my $ca (qw(ca other)) { openssl('req', '-x509', '-newkey', 'rsa:2048', '-nodes', '-days', 30, '-subj', "/CN=$ca", '-keyout', "$dir/$ca.key", '-out', "$dir/$ca.pem"); }
for my $name (qw(broker client))
{
	open(my $out, '>', "$dir/$name.ext") or die $!;
	print $out "subjectAltName=IP:127.0.0.1\n";
	close($out);
	openssl('req', '-newkey', 'rsa:2048', '-nodes', '-subj', "/CN=$name", '-keyout', "$dir/$name.key", '-out', "$dir/$name.csr");
	openssl('x509', '-req', '-in', "$dir/$name.csr", '-CA', "$dir/ca.pem", '-CAkey', "$dir/ca.key", '-CAcreateserial', '-days', 30, '-extfile', "$dir/$name.ext", '-out', "$dir/$name.pem");
}
open(my $store, '>', "$dir/broker.store") or die $!;
print $store slurp("$dir/broker.key"), slurp("$dir/broker.pem");
close($store);

my $plain = 'org.apache.kafka.common.security.plain.PlainLoginModule required username="admin" password="admin-secret" user_cdc="right-secret";';
my $scram = 'org.apache.kafka.common.security.scram.ScramLoginModule required;';
my $kafka = CdcBridge::Kafka->new(
	listeners => [qw(SSL SASL_PLAINTEXT SASL_SSL)],
	format => [ '--add-scram', 'SCRAM-SHA-512=[name=cdc,password=right-secret]' ],
	properties => [
		'authorizer.class.name=org.apache.kafka.metadata.authorizer.StandardAuthorizer', 'super.users=User:ANONYMOUS;User:CN=client',
		'sasl.enabled.mechanisms=PLAIN,SCRAM-SHA-512', (map { ("listener.name.$_.plain.sasl.jaas.config=$plain", "listener.name.$_.scram-sha-512.sasl.jaas.config=$scram") } qw(sasl_plaintext sasl_ssl)),
		'ssl.keystore.type=PEM', "ssl.keystore.location=$dir/broker.store", 'ssl.truststore.type=PEM', "ssl.truststore.location=$dir/ca.pem", 'listener.name.ssl.ssl.client.auth=required',
	]);
my $postgres = CdcBridge::Postgres->new(conf => "wal_level = logical\nlog_min_messages = debug1\n");
my $base = CdcBridge::KafkaExport->new(postgres => $postgres, kafka => $kafka)->setup;
$postgres->psql('create schema shop; create table shop.t (id int primary key, way text)');

# A pipeline by a listener, with options of the server and of the user mapping. It has a topic of its own.
sub pipeline
{
	my ($name, $listener, $server, $mapping) = @_;
	$postgres->psql("create server $name foreign data wrapper cdc_kafka options (bootstrap_servers '${\ $kafka->address($listener)}', request_timeout '3'$server)"
		. ($mapping ? "; create user mapping for current_user server $name options ($mapping)" : ''));
	return CdcBridge::KafkaExport->new(postgres => $postgres, kafka => $kafka, name => "by_$name", server => $name, options => qq({"topic": "$name", "snapshot": "never"}))->start;
}

sub arrives
{
	my ($export, $id) = @_;
	$export->wait_for_state('streaming');
	$postgres->psql("insert into shop.t values ($id, '$export->{name}')");
	$export->wait_for_all;
	my ($message) = grep { $_->{value}{after}{id} == $id } $kafka->messages($export->{server});
	return $message ? $message->{value}{after}{way} : 'nothing';
}

# ---- a wrong password, missing rights, and how it ought to be
my $export = pipeline('plain', 'SASL_PLAINTEXT', '', "username 'cdc', password 'wrong-secret'")->wait_for_status('last_error_sqlstate', qr/./);
is($export->status('last_error_sqlstate'), '28000', 'a wrong password is one of the configuration');
like($export->status('last_error_hint'), qr/"username" and "password" of the user mapping/, '... and says where it is');
$export->stop;
$postgres->psql("alter user mapping for current_user server plain options (set password 'right-secret')");
$export->start->wait_for_status('last_error_sqlstate', qr/42501/);
like($export->status('last_error_hint'), qr/needs Write and Describe on transactional id "cdc-\d+-\d+-1"/, 'rights that are missing are named');
my ($id) = $export->status('last_error_hint') =~ /"(cdc-\d+-\d+)-1"/;
$export->stop;
for my $grant ([ 'Write', 'Describe', '--transactional-id', $id, '--resource-pattern-type', 'prefixed' ], [ 'Write', 'Describe', 'DescribeConfigs', 'Create', 'Read', '--topic', '*' ])
{
	my @operations = map { ('--operation', $_) } grep { /^[A-Z]/ } @$grant;
	run_program("$kafka->{dir}/acl.log", $kafka->java('org.apache.kafka.tools.AclCommand', '--bootstrap-server', $kafka->address, '--add', '--force', '--allow-principal', 'User:cdc', @operations,
		grep { !/^[A-Z]/ } @$grant));
}
is(arrives($export->start, 1), 'by_plain', 'PLAIN without TLS to a loopback address, with no more rights than the text names');
$export->drop;

# ---- SCRAM: brokers of Kafka 4 refuse that of an older library
my ($major, $minor, $patch) = qx(kcat -V) =~ /librdkafka (\d+)\.(\d+)\.(\d+)/;
$export = pipeline('scram', 'SASL_PLAINTEXT', ", sasl_mechanism 'SCRAM-SHA-512'", "username 'cdc', password 'right-secret'");
if (($major * 100 + $minor) * 100 + $patch >= 20601) { is(arrives($export, 4), 'by_scram', 'SCRAM'); }
else { like($export->wait_for_status('last_error_sqlstate', qr/28000/)->status('last_error_hint'), qr/refuse SCRAM of librdkafka before 2\.6\.1/, 'SCRAM of an older library is told'); }
$export->drop;

# ---- TLS
$export = pipeline('other', 'SASL_SSL', ", security_protocol 'sasl_ssl', sasl_mechanism 'PLAIN', ssl_ca '$dir/other.pem'", "username 'cdc', password 'right-secret'")->wait_for_status('last_error_sqlstate', qr/./);
is($export->status('last_error_sqlstate'), 'HV00N', 'a broker whose certificate another authority has made is refused');
like($export->status('last_error_detail'), qr/certificate/, '... and the reason is told');
$export->drop;
$export = pipeline('tls', 'SASL_SSL', ", security_protocol 'sasl_ssl', sasl_mechanism 'PLAIN', ssl_ca '$dir/ca.pem'", "username 'cdc', password 'right-secret'");
is(arrives($export, 2), 'by_tls', 'PLAIN by TLS');
$export->drop;
$export = pipeline('no_certificate', 'SSL', ", security_protocol 'ssl', ssl_ca '$dir/ca.pem'")->wait_for_status('last_error_sqlstate', qr/./);
like($export->status('last_error_sqlstate'), qr/^(HV00N|08006)$/, 'without a certificate where the broker wants one');
$export->drop;
$export = pipeline('certificate', 'SSL', ", security_protocol 'ssl', ssl_ca '$dir/ca.pem', ssl_cert '$dir/client.pem', ssl_key '$dir/client.key', \"linger.ms\" '10'");
is(arrives($export, 3), 'by_certificate', 'a certificate instead of a password, and a property of the library by its own name');
$export->drop;

unlike($postgres->log_text, qr/(wrong|right)-secret/, 'no password is in the log');
unlike($postgres->log_text, qr/\b(TRAP|PANIC):/, 'no assertion failed, no panic');

done_testing();
