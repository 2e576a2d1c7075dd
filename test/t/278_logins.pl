# Ways to log in that MariaDB has beside passwords of its old kind: ed25519, and from 11.6 on PARSEC, which only newer client
# libraries know. What the library here can do works, for queries and for the log; what it cannot is told, with a way out.
# cells: mariadb118-15

use strict;
use warnings;

use CdcBridge::Pipeline;
use CdcBridge::Postgres;
use CdcBridge::Source;
use Test::More;

my $source = CdcBridge::Source->new;
plan skip_all => 'only MariaDB has them, and the plugins come with its unpacked server' unless $source->is_mariadb && $source->{home};
my $postgres = CdcBridge::Postgres->new;
$source->sql('create database shop', 'create table shop.t (id int primary key)', 'insert into shop.t values (1)');
my $pipeline = CdcBridge::Pipeline->new(source => $source, postgres => $postgres);
my $id = 1;

# A user who logs in by PLUGIN, with all that the extension asks for.
sub create_user
{
	my ($name, $plugin, $password) = @_;
	$source->sql("create user $name\@'%' identified via $plugin using password('$password')",
		"grant select, replication slave, binlog monitor on *.* to $name\@'%'");
	return;
}

sub start_as
{
	my ($name, $password) = @_;
	$pipeline->stop->drop if $pipeline->{created};
	delete $pipeline->{created};
	$postgres->psql('set client_min_messages = warning; drop extension if exists cdc_bridge cascade');
	$pipeline->drop_target->setup(username => $name, password => $password)->start;
	return;
}

sub works
{
	my ($what, $name, $password) = @_;
	start_as($name, $password);
	$pipeline->wait_for_state('streaming')->wait_for_tables;
	$id++;
	$source->sql("insert into shop.t values ($id)");
	$pipeline->wait_for_catchup;
	$pipeline->is_same($what);
	return;
}

sub refused
{
	my ($what, $name, $password, $told) = @_;
	start_as($name, $password);
	$pipeline->wait_for_state(qr/^(retrying|failed)$/);
	is($pipeline->status('last_error_sqlstate'), '28000', "$what: SQLSTATE");
	like($pipeline->status('last_error_detail') . ' ' . $pipeline->status('last_error_hint'), $told, "$what: told");
	unlike($postgres->log_text, qr/\Q$password\E/, "$what: the password is not in the log");
	return;
}

$source->sql(q{install soname 'auth_ed25519'}, q{install soname 'auth_parsec'}, q{install soname 'auth_pam_v1'});
my $long = join('', map { chr(97 + $_ % 26) } 1 .. 120);
create_user('edward', 'ed25519', 'edwards-secret');
create_user('long_ed', 'ed25519', $long);
create_user('percy', 'parsec', 'percys-secret');

works('B28: ed25519', 'edward', 'edwards-secret');
works('B28: ed25519 with a password of 120 characters', 'long_ed', $long);
refused('B28: ed25519 with a wrong password', 'edward', 'not-edwards', qr/Access denied.*Check username and password/);

my $plugins = qx(mariadb_config --plugindir);
chomp($plugins);
if (-e ($ENV{MARIADB_PLUGIN_DIR} // $plugins) . '/parsec.so')
{
	works('B28: PARSEC', 'percy', 'percys-secret');
	refused('B28: PARSEC with a wrong password', 'percy', 'not-percys', qr/Access denied.*Check username and password/);
}
else
{
	refused('B28: PARSEC, which the client library lacks', 'percy', 'percys-secret', qr{parsec.*Install a libmariadb that has it.*ALTER USER});
}

# the server asks for the password itself
$source->sql(q{create user pam@'%' identified via pam}, q{grant select, replication slave, binlog monitor on *.* to pam@'%'});
refused('B28: PAM, which would show the password', 'pam', 'pams-secret', qr{asks for a way to log in that is not taken \(error 5010\)\. This way.*ALTER USER});

done_testing();
