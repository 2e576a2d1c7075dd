# A source that lies: damaged greetings, logins, answers and binary log events, told by a proxy before a real server. No
# process may crash or grow without bound, each lie has an SQLSTATE and not the one for internal errors, and when the server
# is honest again the pipeline comes back and equals the source. CDC_TEST_ROUNDS raises the number of rounds, CDC_TEST_SEED
# repeats them, CDC_TEST_LIES names some to be told.
# cells: mariadb-15
# takes: 50 s

use strict;
use warnings;

use CdcBridge::Env qw(poll_until);
use CdcBridge::FakeServer;
use CdcBridge::Pipeline;
use CdcBridge::Postgres;
use CdcBridge::Source;
use List::Util qw(max shuffle);
use Test::More;
use Time::HiRes qw(time);

use constant { MEMORY_MB => 600, LIE_SECONDS => 2.5 };

my $seed = $ENV{CDC_TEST_SEED} // time() ^ $$;
my $rounds = $ENV{CDC_TEST_ROUNDS} // 20;
$seed = int($seed) & 0x7fffffff;
note("CDC_TEST_SEED=$seed");

my $source = CdcBridge::Source->new;
my $postgres = CdcBridge::Postgres->new(conf => "log_error_verbosity = verbose\nmax_worker_processes = 30\n");
my $fake = CdcBridge::FakeServer->new(upstream => $source, seed => $seed);
$source->sql('create database shop', 'use shop',
	'create table shop.a (id int primary key auto_increment, n decimal(20,4), t varchar(200), d datetime(3))',
	q{create table shop.b (id bigint primary key, j json, e enum('x', 'y'), blob_ blob)},
	q{insert into shop.a (n, t, d) select seq * 1.5, repeat('ä', seq % 50), now(3) from seq_1_to_300},
	q{insert into shop.b select seq, '{"a": [1, 2]}', 'y', repeat('z', seq) from seq_1_to_100});

my $postmaster = $postgres->{pid};
my $peak = 0;
my %told;

# The largest resident size that any process of ours has had.
sub look_at_memory
{
	opendir(my $proc, '/proc') or die "/proc: $!";
	for my $pid (grep { /^\d+$/ } readdir($proc))
	{
		open(my $in, '<', "/proc/$pid/status") or next;
		local $/;
		my $status = <$in> // next;
		my ($parent) = $status =~ /^PPid:\s+(\d+)/m;
		next unless ($parent // 0) == $postmaster;
		my ($kb) = $status =~ /^VmHWM:\s+(\d+)/m;
		$peak = max($peak, ($kb // 0) / 1024);
	}
	return;
}

my $pipeline;
my $number = 0;

# A new pipeline through the liar, with a target of its own; the old one goes.
sub begin_anew
{
	if ($pipeline)
	{
		$postgres->try_psql("select cdc_stop_pipeline('$pipeline->{name}')");
		$pipeline->wait_for_state('stopped')->drop->drop_target;
	}
	$number++;
	$pipeline = CdcBridge::Pipeline->new(source => $source, postgres => $postgres, name => "p$number", server => "s$number", target_schema => "t$number",
		server_options => { host => $fake->host, port => $fake->port })->setup;
	return;
}

sub change_something
{
	my $id = 1000 + int(rand(1e9));
	$source->sql("insert into shop.a (n, t, d) values ($id, 'new', now(3))", "update shop.a set n = n + 1 where id % 7 = $id % 7",
		"insert ignore into shop.b values ($id, '{}', 'x', 'new')", "delete from shop.b where id % 50 = $id % 50");
	return;
}

# Meet one lie: until it was told and an error came of it, or some seconds have shown that it does no harm.
sub meet
{
	my ($name, $anew) = @_;
	$fake->behave($name);
	my $started = '';
	if ($anew)
	{
		begin_anew();
		$started = $postgres->psql_error($pipeline->start_statement);
		$pipeline->{created} = 1;
	}
	change_something();
	my ($state, $sqlstate, $error) = ('', '', '');
	my $begin = time();
	poll_until(sub {
		look_at_memory();
		my ($status, $out) = $postgres->try_psql("select state, last_error_sqlstate, last_error from pg_stat_cdc_pipeline where pipeline = '$pipeline->{name}' and extract(epoch from last_error_at) > " . ($fake->acted_at || 1e11));
		($state, $sqlstate, $error) = split(/\|/, $out, 3) if $status == 0 && $out ne '';
		return $started ne '' || $state ne '';
	}, LIE_SECONDS);
	if ($started ne '')
	{
		($sqlstate) = $started =~ /ERROR:\s+(\w{5}):/;
		$error = $started;
		delete $pipeline->{created};
	}
	$told{$name}++ if $fake->acted;
	note(sprintf('%-20s told %d times in %.1f s, %d MB: %s %s %s', $name, $fake->acted, time() - $begin, $peak, $state, $sqlstate // '', substr($error // '', 0, 100) =~ s/\s+/ /gr));
	my ($status, $out, $err) = $postgres->try_psql("select convert_from(convert_to(concat_ws(' ', last_error, last_error_detail, last_error_hint), 'UTF8'), 'UTF8') from pg_stat_cdc_pipeline");
	is($err, '', "$name: what is told is text");
	isnt($sqlstate // '', 'XX000', "$name: no internal error") or diag($error);
	like($error, qr/\w/, "$name: the error is told") if ($sqlstate // '') ne '';
	return;
}

# Lies that are (or may by chance be) well formed: an empty answer or a NULL gives a false picture of the source, which only
# a new copy mends.
my %false = map { $_ => 1 } qw(null_row ok_not_rows garbage_answer);

# The server is honest again.
sub come_back
{
	my ($name, $again) = @_;
	$fake->behave('honest');
	if (!$pipeline->{created}) { $pipeline->start; }
	elsif ($pipeline->state ne 'streaming') { $postgres->try_psql("select cdc_start_pipeline('$pipeline->{name}')"); }
	my $ok = eval { $pipeline->wait_for_state('streaming', 60)->wait_for_tables(60)->wait_for_catchup(60); 1 };
	my $error = $@;
	if ($false{$name} && !$again && !($ok && $pipeline->same_rows))
	{
		note("$name: a false picture: begin anew");
		begin_anew();
		return come_back($name, 1);
	}
	ok($ok, "$name: it comes back") or diag($error);
	$ok &&= $pipeline->is_same("$name: and equals the source");
	diag($pipeline->describe) unless $ok;
	return $ok;
}

srand($seed);
begin_anew();
$pipeline->start;
come_back('through the proxy');

# every lie has its turn before one comes again; those at login and in answers also meet a pipeline that only begins
my @turn;
for my $round (1 .. $rounds)
{
	@turn = shuffle((map { [ $_, 0 ] } CdcBridge::FakeServer::dumps()), map { [ $_, rand() < 0.6 ] } CdcBridge::FakeServer::login(), CdcBridge::FakeServer::answers())
	  unless @turn;
	@turn = grep { my $lie = $_->[0]; grep { $_ eq $lie } split(/[ ,]+/, $ENV{CDC_TEST_LIES}) } @turn if $ENV{CDC_TEST_LIES};
	my ($name, $anew) = @{ shift @turn };
	meet($name, $anew);
	come_back($name) or last;
	is(scalar(@{ [ $postgres->log_text =~ /terminated by signal|PANIC|TRAP:|was terminated|reinitializing/g ] }), 0, "$name: nothing crashed")
	  or last;
}
cmp_ok(scalar(keys %told), '>', $rounds > 10 && !$ENV{CDC_TEST_LIES} ? 5 : 0, 'the lies were told');
cmp_ok($peak, '<', MEMORY_MB, sprintf('no process took more than %d MB (%d MB)', MEMORY_MB, $peak));
ok(kill(0, $postmaster), 'the postmaster is the same');
my @internal = $postgres->log_text =~ /^.*XX000.*$/mg;
is(scalar(@internal), 0, 'no internal error in the log') or diag(map { "$_\n" } @internal[ 0 .. (@internal > 5 ? 5 : $#internal) ]);

done_testing();
