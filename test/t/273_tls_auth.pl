# TLS and ways to log in: what is asked for is what happens, for the log too; what does not fit is refused and told.
# cells: mariadb-15 mysql-18

use strict;
use warnings;

use CdcBridge::Env qw(new_folder poll_until run_program);
use CdcBridge::Pipeline;
use CdcBridge::Postgres;
use CdcBridge::Source;
use Test::More;

plan skip_all => 'openssl is not installed' unless grep { -x "$_/openssl" } split(/:/, $ENV{PATH});

# an authority, a server's certificate for localhost, and another authority
my $dir = new_folder('tls');
chmod(0755, $dir);
sub openssl { return run_program("$dir/log", 'openssl', @_); }
for my $ca (qw(ca other))
{
	openssl('req', '-x509', '-newkey', 'rsa:2048', '-nodes', '-days', 30, '-subj', "/CN=$ca", '-keyout', "$dir/$ca.key", '-out', "$dir/$ca.pem");
}
sub certificate
{
	my ($name, $host) = @_;
	open(my $out, '>', "$dir/$name.ext") or die;
	print $out "subjectAltName=DNS:$host\n";
	close($out);
	openssl('req', '-newkey', 'rsa:2048', '-nodes', '-subj', "/CN=$host", '-keyout', "$dir/$name.key", '-out', "$dir/$name.csr");
	openssl('x509', '-req', '-in', "$dir/$name.csr", '-CA', "$dir/ca.pem", '-CAkey', "$dir/ca.key", '-CAcreateserial', '-days', 30,
		'-extfile', "$dir/$name.ext", '-out', "$dir/$name.pem");
	chmod(0644, "$dir/$name.key");
	return;
}
certificate('server', 'localhost');
certificate('elsewhere', 'elsewhere.example');

sub ssl_args { my ($name) = @_; return ("--ssl-ca=$dir/ca.pem", "--ssl-cert=$dir/$name.pem", "--ssl-key=$dir/$name.key"); }
my $source = CdcBridge::Source->new(args => [ ssl_args('server') ]);
my $postgres = CdcBridge::Postgres->new;
$source->sql('create database shop', 'create table shop.t (id int primary key)', 'insert into shop.t values (1)');
my $pipeline = CdcBridge::Pipeline->new(source => $source, postgres => $postgres, server_options => { host => 'localhost' });
my $id = 1;

sub set_options
{
	my (%option) = @_;
	$pipeline->stop if $pipeline->{created};
	$postgres->psql('drop extension if exists cdc_bridge cascade');
	delete $pipeline->{created};
	$pipeline->{server_options} = { host => 'localhost', %option };
	$pipeline->drop_target->setup->start;
	return;
}

sub works
{
	my ($name, %option) = @_;
	set_options(%option);
	$pipeline->wait_for_state('streaming')->wait_for_tables;
	$id++;
	$source->sql("insert into shop.t values ($id)");
	$pipeline->wait_for_catchup;
	$pipeline->is_same($name);
	return;
}

sub refused
{
	my ($name, $sqlstate, $what, %option) = @_;
	set_options(%option);
	$pipeline->wait_for_state('retrying');
	like($pipeline->status('last_error_sqlstate'), $sqlstate, "$name: SQLSTATE");
	like($pipeline->status('last_error_detail') . ' ' . $pipeline->status('last_error_hint'), $what, "$name: told");
	return;
}

# ---- 1. without TLS

works('B28: without TLS on loopback' . ($source->is_mysql ? ', by caching_sha2_password and the server\'s RSA key' : ''), sslmode => 'disable');
is($source->query_value(q{select plugin from mysql.user where user = 'repl'}), 'caching_sha2_password', 'that is the user\'s plugin') if $source->is_mysql;
my $long = join('', map { chr(97 + $_ % 26) } 1 .. 120);
$source->set_password('repl', $long);
$source->{password} = $long;
works('B28: a password of 120 characters', sslmode => 'disable');

# ---- 2. the server lets nobody in without TLS: the connection that reads the log has it too

$source->sql('set global require_secure_transport = on');
refused('B28: require_secure_transport, and we have no TLS', qr/^(08001|28000)$/, qr/(secure transport|Access denied)/i, sslmode => 'disable');
works('B28: with TLS, for queries and for the log', sslmode => 'require');
works('B28: the authority is checked', sslmode => 'verify-ca', ssl_ca => "$dir/ca.pem");
works('B28: the name too', sslmode => 'verify-full', ssl_ca => "$dir/ca.pem");
refused('B28: signed by another authority', qr/^08001$/, qr/TLS could not be set up/, sslmode => 'verify-ca', ssl_ca => "$dir/other.pem");
refused('B28: the same with its name', qr/^08001$/, qr/TLS could not be set up/, sslmode => 'verify-full', ssl_ca => "$dir/other.pem");

# a certificate of the right authority with another name
my $elsewhere = CdcBridge::Source->new(args => [ ssl_args('elsewhere') ]);
$elsewhere->sql('create database shop', 'create table shop.t (id int primary key)');
$pipeline->{source} = $elsewhere;
$source = $elsewhere;
refused('B28: a certificate for another name', qr/^08001$/, qr/TLS could not be set up/, sslmode => 'verify-full', ssl_ca => "$dir/ca.pem");
works('B28: which verify-ca does not look at', sslmode => 'verify-ca', ssl_ca => "$dir/ca.pem");

# ---- 3. a server without TLS

my $plain = CdcBridge::Source->new(args => [ $source->is_mysql ? '--tls-version=' : '--skip-ssl' ]);
$plain->sql('create database shop', 'create table shop.t (id int primary key)');
$pipeline->{source} = $source = $plain;
refused('B28: TLS is wanted and the server has none', qr/^(08001|28000)$/, qr/(TLS|SSL)/, sslmode => 'require');

done_testing();
